"""AWS's own client, on our loop. Loaded with the first call, because it takes half a second.

Credentials come from AWS's usual places (environment, profile, role), and are renewed by the client while it lives.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from functools import lru_cache
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from aiohttp import ClientError as HttpError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
)
from botocore.loaders import Loader, create_loader
from botocore.session import Session

from onthedot.settings import AwsSetting
from onthedot.targets.aws.failure import AwsFailed

__all__ = ["ask", "make_client"]

_NOBODY = {"aws_access_key_id": "-", "aws_secret_access_key": "-"}
CONNECT_WITHIN = 5
KEEP_ALIVE = 60
"""Seconds of silence after which a connection is probed: networks forget what is silent for minutes, and a function
may take fifteen."""


async def make_client(
    service: str, setting: AwsSetting, region: str, opening: AsyncExitStack, *, connections: int, read_within: float
) -> Any:
    """Makes no connection yet. Asks once: whether to ask again is decided by whoever made the job."""
    config = AioConfig(
        connect_timeout=CONNECT_WITHIN,
        read_timeout=read_within,
        retries={"total_max_attempts": 1},
        max_pool_connections=connections,
        connector_args={"socket_factory": _kept_alive},
    )
    session = get_session()
    session.register_component("data_loader", await asyncio.to_thread(_descriptions, service))
    return await opening.enter_async_context(
        session.create_client(service, region_name=region, endpoint_url=setting.endpoint, config=config)
    )


async def ask(client: Any, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer, with a body that comes as a stream read to its end."""
    try:
        answer: dict[str, Any] = await getattr(client, operation)(**arguments)
        if "Payload" in answer:
            async with answer["Payload"] as stream:
                answer["Payload"] = await stream.read()
    except ClientError as error:
        raise _failed(error) from None
    except (BotoCoreError, HTTPClientError, HttpError, OSError) as error:
        was_sent = not isinstance(error, EndpointConnectionError | NoCredentialsError)
        raise AwsFailed(str(error) or type(error).__name__, was_sent=was_sent) from None
    return answer


def _failed(error: ClientError) -> AwsFailed:
    said = error.response.get("Error", {})
    about = error.response.get("ResponseMetadata", {})
    code = str(said.get("Code") or "Unknown")
    message = said.get("Message") or error.response.get("message") or error.response.get("Message") or "no reason given"
    after = str(about.get("HTTPHeaders", {}).get("retry-after", ""))
    return AwsFailed(
        f"{code}: {message}"[:1000],
        code,
        about.get("HTTPStatusCode"),
        int(after) * 1000 if after.isascii() and after.isdigit() and len(after) < 6 else None,
    )


@lru_cache(maxsize=8)
def _descriptions(service: str) -> Loader:
    """What AWS can do, read from large files: a first client, which is never used, makes the loader keep them."""
    loader, session = create_loader(), Session()
    session.register_component("data_loader", loader)
    session.create_client(service, region_name="us-east-1", **_NOBODY).close()
    return loader


def _kept_alive(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), KEEP_ALIVE)
    return made
