"""Who changes something: a key, anybody on an open server, a jobs file, an intake, or On the Dot itself."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["ITSELF", "ChangeActor", "actor_words", "file_actor"]

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


def actor_words(name: str | None, kind: str | None) -> str | None:
    """Who changed something, as one says it after "by"."""
    if name is None:
        return None
    return {"open": "someone without a key", "file": f"the jobs file {name}", "system": "On the Dot itself"}.get(
        kind or "", name
    )
