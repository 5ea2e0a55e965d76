"""Objects in S3, or in what speaks its protocol: `s3://bucket/prefix?endpoint=https://…&region=…`.

The client (obstore) is an extra, `onthedot[s3]`. Credentials come from where every tool of AWS has them: the variables
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the role of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from onthedot.errors import ObjectMissing, ObjectStoreUnavailable, SettingsError
from onthedot.objects.contract import ObjectStore, checked

if TYPE_CHECKING:
    from obstore.store import S3Config

__all__ = ["S3Objects"]

TIMEOUT = timedelta(seconds=10)
ATTEMPTS = 3
_OPTIONS = ("endpoint", "region")


class S3Objects(ObjectStore):
    def __init__(self, client: Any, place: str) -> None:
        self._client, self._place = client, place

    def __str__(self) -> str:
        return self._place

    @classmethod
    def at(cls, place: str) -> S3Objects:
        try:
            from obstore.store import S3Store
        except ImportError:
            raise SettingsError(f"OBJECT_STORE is {place}, which requires: pip install 'onthedot[s3]'") from None
        try:
            parts = urlsplit(place)
        except ValueError:  # a bracket that is not closed
            parts = urlsplit("")
        options = dict(parse_qsl(parts.query))
        if not parts.hostname or set(options) - set(_OPTIONS):
            raise SettingsError(
                f"OBJECT_STORE: {place!r} is not valid. Accepted: s3://BUCKET/PREFIX?endpoint=URL&region=NAME"
            )
        endpoint = options.get("endpoint")
        config: S3Config = {"region": options.get("region", "us-east-1")}
        if endpoint is not None:
            config |= {"endpoint": endpoint, "virtual_hosted_style_request": False}
        client = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            config=config,
            client_options={"allow_http": (endpoint or "").startswith("http://"), "timeout": TIMEOUT},
            retry_config={"max_retries": ATTEMPTS, "retry_timeout": ATTEMPTS * TIMEOUT},
        )
        return cls(client, f"s3://{parts.netloc}{parts.path}")

    async def put(self, name: str, content: bytes) -> None:
        with self._told(name):
            await self._client.put_async(checked(name), content)

    async def get(self, name: str) -> bytes:
        with self._told(name):
            found = await self._client.get_async(checked(name))
            return bytes(await found.bytes_async())

    async def exists(self, name: str) -> bool:
        try:
            with self._told(name):
                await self._client.head_async(checked(name))
        except ObjectMissing:
            return False
        return True

    async def delete(self, name: str) -> None:
        try:
            with self._told(name):
                await self._client.delete_async(checked(name))
        except ObjectMissing:
            pass

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError:
            raise ObjectMissing(f"object {name} not found in {self._place}") from None
        except (BaseError, OSError) as error:
            first = str(error).partition("\n")[0][:300]
            raise ObjectStoreUnavailable(f"the object store {self._place} is unavailable: {first}") from error
