"""AWS as its clients see it, small and strict: requests are signed as AWS wants it or refused, and what is not known is
an error. For what moto does not do: functions that fail, log, or are throttled, and executions that end."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

__all__ = ["KEY", "REGION", "SECRET", "FakeAws", "Refusal"]

KEY, SECRET, REGION = "AKIAFAKE", "fake/secret", "eu-west-1"


class Refusal(Exception):
    """As AWS refuses."""

    def __init__(self, status: int, code: str, message: str = "as the test wants it") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Invoked:
    """One call of a function."""

    def __init__(self, function: str, kind: str, event: Any, context: dict[str, Any]) -> None:
        self.function, self.kind, self.event, self.context = function, kind, event, context


Behaviour = Callable[[Invoked], Awaitable[Any]]


class Failing(Exception):
    """What a function raises, as its runtime writes it."""


class FakeAws:
    """In this process, on a port that it keeps when it is restarted. `functions` by name; `services` by the prefix of
    their targets."""

    def __init__(self) -> None:
        self.functions: dict[str, Behaviour] = {}
        self.services: dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = {}
        self.invoked: list[Invoked] = []
        self.key, self.secret = KEY, SECRET
        self.account: str | None = None  # that STS tells, if it is there
        self.requests = 0
        self._port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/2015-03-31/functions/{name}/invocations", self._answered(self._invoke))
        app.router.add_get("/2015-03-31/functions", self._answered(self._list))
        app.router.add_post("/", self._answered(self._operation))
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def _answered(
        self, handle: Callable[[web.Request, bytes], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            body = await request.read()
            self.requests += 1
            try:
                self._check_signature(request, body)
                return await handle(request, body)
            except Refusal as refusal:
                said = {"__type": refusal.code, "message": str(refusal), "Message": str(refusal), "Type": "User"}
                headers = {"x-amzn-ErrorType": refusal.code}
                return web.json_response(said, status=refusal.status, headers=headers)

        return answer

    def _check_signature(self, request: web.Request, body: bytes) -> None:
        given = request.headers.get("Authorization", "")
        if not given.startswith("AWS4-HMAC-SHA256 "):
            raise Refusal(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        parts = dict(part.split("=", 1) for part in given.removeprefix("AWS4-HMAC-SHA256 ").split(", "))
        key, _, region, service, _ = parts["Credential"].split("/")
        if key != self.key:
            raise Refusal(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        signer = SigV4Auth(Credentials(self.key, self.secret), service, region)
        signed = AWSRequest(request.method, f"{self.url}{request.raw_path}", data=body)
        for name in parts["SignedHeaders"].split(";"):
            signed.headers[name] = request.headers[name]
        signed.context["timestamp"] = request.headers["X-Amz-Date"]
        canonical = signer.canonical_request(signed)
        if signer.signature(signer.string_to_sign(signed, canonical), signed) != parts["Signature"]:
            raise Refusal(403, "InvalidSignatureException", "The request signature we calculated does not match.")

    async def _list(self, request: web.Request, body: bytes) -> web.Response:
        return web.json_response({"Functions": []})

    async def _invoke(self, request: web.Request, body: bytes) -> web.Response:
        name, kind = request.match_info["name"], request.headers.get("X-Amz-Invocation-Type", "RequestResponse")
        if kind not in ("RequestResponse", "Event"):
            raise Refusal(400, "InvalidParameterValueException", f"invocation type {kind}")
        try:
            event = json.loads(body)
            context = json.loads(base64.b64decode(request.headers.get("X-Amz-Client-Context", "e30=")))
        except ValueError:
            raise Refusal(400, "InvalidRequestContentException", "Could not parse request body into json") from None
        behaviour = self.functions.get(name)
        if behaviour is None:
            raise Refusal(404, "ResourceNotFoundException", f"Function not found: {name}")
        invoked = Invoked(name, kind, event, context)
        self.invoked.append(invoked)
        if kind == "Event":
            return web.Response(status=202)
        headers = {"X-Amz-Executed-Version": "$LATEST"}
        if request.headers.get("X-Amz-Log-Type") == "Tail":
            headers["X-Amz-Log-Result"] = base64.b64encode(f"START {name}\nEND {name}\n".encode()).decode()
        try:
            result = await behaviour(invoked)
        except Failing as failing:
            headers["X-Amz-Function-Error"] = "Unhandled"
            result = {"errorMessage": str(failing), "errorType": "ValueError", "stackTrace": []}
        return web.Response(body=json.dumps(result).encode(), headers=headers)

    async def _operation(self, request: web.Request, body: bytes) -> web.Response:
        if self.account is not None and b"Action=GetCallerIdentity" in body:
            result = f"<GetCallerIdentityResult><Account>{self.account}</Account></GetCallerIdentityResult>"
            text = f"<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>"
            return web.Response(text=text, content_type="text/xml")
        service, _, operation = request.headers.get("X-Amz-Target", "").partition(".")
        if service not in self.services:
            raise Refusal(400, "UnknownOperationException", operation)
        answer = self.services[service](operation, json.loads(body))
        return web.json_response(answer, content_type="application/x-amz-json-1.0")


async def echoes(invoked: Invoked) -> Any:
    return invoked.event


async def fails(invoked: Invoked) -> Any:
    raise Failing("no such customer")


async def hangs(invoked: Invoked) -> Any:
    await asyncio.Event().wait()


def refuses(status: int, code: str) -> Behaviour:
    async def refuse(invoked: Invoked) -> Any:
        raise Refusal(status, code)

    return refuse
