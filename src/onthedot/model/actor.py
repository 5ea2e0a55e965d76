"""Who changes something: a key, anybody on an open server, a jobs file, an intake, or On the Dot itself."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["ITSELF", "ChangeActor", "file_actor"]

ActorKind = Literal["key", "open", "file", "intake", "system"]


class ChangeActor(msgspec.Struct, frozen=True, kw_only=True):
    """`name`: of the key, of the file's source, of the intake (`intake:orders`); "open" on a server without keys."""

    kind: ActorKind
    name: str
    key_id: int | None = None
    address: str | None = None  # where the request came from

    def __str__(self) -> str:
        return {"open": "open", "system": self.name}.get(self.kind, f"{self.kind} {self.name}")


ITSELF = ChangeActor(kind="system", name="onthedot")
"""Nobody asked: a pause that ended, a job that its receiver parked."""


def file_actor(source: str) -> ChangeActor:
    return ChangeActor(kind="file", name=source)
