"""JSON over HTTP to an engine that the operator named, with its login."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import TYPE_CHECKING, Any

import msgspec

from onthedot.errors import SettingsError
from onthedot.settings import WorkflowSetting
from onthedot.targets.workflow.engine import EngineDown, EngineNotReached, StartRefused

if TYPE_CHECKING:
    import aiohttp

__all__ = ["EngineApi", "HttpAnswer"]

CONNECTIONS = 8
WITHIN = 15.0
LARGEST = 16 << 20


class HttpAnswer(msgspec.Struct, frozen=True):
    status: int
    body: Any
    text: str

    def refused(self) -> StartRefused:
        """What an error answer means for a start: who is not known may be soon."""
        return StartRefused(f"HTTP {self.status}: {self._why()}", retryable=self.status == 401)

    def _why(self) -> str:
        if isinstance(self.body, dict):
            for name in ("message", "detail", "title"):
                if isinstance(said := self.body.get(name), str) and said:
                    return said[:500]
            return msgspec.json.encode(self.body).decode()[:500]
        return self.text[:200] or "no reason given"


class EngineApi:
    """`basic`: user and password go out with each request; else they are for whoever makes a token."""

    def __init__(self, setting: WorkflowSetting, *, basic: bool = False) -> None:
        self.setting, self.basic = setting, basic
        self.token: str | None = None  # one that was made for us
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, method: str, path: str, body: Any = None, *, login: bool = True) -> HttpAnswer:
        """Any answer below 500, except 408, 425 and 429."""
        import aiohttp

        try:
            headers = self._login() if login else {}
        except SettingsError as error:
            raise EngineNotReached(str(error)) from None
        data = None if body is None else msgspec.json.encode(body)
        if data is not None:
            headers["content-type"] = "application/json"
        try:
            async with (
                asyncio.timeout(WITHIN),
                self._opened().request(
                    method, self.setting.url + path, data=data, headers=headers, allow_redirects=False
                ) as answer,
            ):
                raw = await answer.content.read(LARGEST + 1)
                while len(raw) <= LARGEST and (more := await answer.content.read(LARGEST)):
                    raw += more
                status = answer.status
        except TimeoutError:
            raise EngineDown(f"no answer within {WITHIN:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise EngineNotReached(str(error)) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise EngineDown(str(error) or type(error).__name__) from None
        if len(raw) > LARGEST:
            raise EngineDown(f"an answer of more than {LARGEST >> 20} MB")
        text = raw.decode(errors="replace")
        try:
            read = msgspec.json.decode(raw) if raw else None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            read = None
        if status >= 500 or status in (408, 425, 429):
            raise EngineDown(str(HttpAnswer(status, read, text).refused()))
        return HttpAnswer(status, read, text)

    def _login(self) -> dict[str, str]:
        token = self.token or self.setting.secret("token")
        if token is not None:
            bearer = token if token.startswith("Bearer ") else f"Bearer {token}"
            return {"authorization": bearer}
        if self.basic and self.setting.user is not None:
            password = self.setting.secret("password") or ""
            pair = base64.b64encode(f"{self.setting.user}:{password}".encode()).decode()
            return {"authorization": f"Basic {pair}"}
        return {}

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp  # takes a tenth of the time until a node is ready, and most have no such engine

        if self._session is None:
            secure: ssl.SSLContext | bool = True
            if self.setting.ca is not None:
                secure = ssl.create_default_context(cafile=self.setting.ca)
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=secure)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
