"""Carries out what messages say, by the verbs that the API has. While the store is away it waits, and tries again.

Each verb writes the message's id in the transaction of its effect: a second delivery finds it there, whichever node the
first one went to, and however that ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from onthedot.errors import (
    Abandoned,
    Conflict,
    Forbidden,
    Invalid,
    ObjectMissing,
    ObjectStoreUnavailable,
    OnTheDotError,
    StoreError,
)
from onthedot.intake.commands import (
    Command,
    CreateCommand,
    DeleteCommand,
    PatchCommand,
    PauseCommand,
    PutCommand,
    ResumeCommand,
    RunCommand,
    used_before,
)
from onthedot.intake.segments import segments
from onthedot.model.job import JobSpec
from onthedot.service import Service

__all__ = ["CommandApplier", "Judged"]

AT_ONCE = 8
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class Judged(msgspec.Struct, frozen=True):
    """What became of a message. `repeated`: it changed nothing, since it was carried out before."""

    result: Literal["ok", "repeated", "refused"]
    error: Exception | None = None


OK, REPEATED = Judged("ok"), Judged("repeated")


class CommandApplier:
    def __init__(self, service: Service, tenant: int, allow: Sequence[str], held: Callable[[str | None], None]) -> None:
        """`held` is told why nothing can be written at present, and None when it can again."""
        self._service, self._tenant, self._allow, self._held = service, tenant, frozenset(allow), held
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def apply(self, commands: Sequence[Command]) -> list[Judged]:
        """One answer for each, in order. All of them are in the store by then."""
        judged: dict[str, list[Judged]] = {}
        for part in segments(commands):
            for command, answer in zip(part, await self._until_judged(part), strict=True):
                judged.setdefault(command.repeat.key, []).append(answer)
        return [judged[command.repeat.key].pop(0) for command in commands]

    async def _until_judged(self, part: list[Command]) -> list[Judged]:
        answers: list[Judged | None] = [None] * len(part)
        pause, is_held = FIRST_PAUSE, False
        while left := [place for place, answer in enumerate(answers) if answer is None]:
            found = await self._try([part[place] for place in left])
            for place, one in zip(left, found, strict=True):
                answers[place] = one if isinstance(one, Judged) else None
            if away := [one for one in found if not isinstance(one, Judged)]:
                is_held = True
                self._held(str(away[0]) or type(away[0]).__name__)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        if is_held:
            self._held(None)
        return [answer for answer in answers if answer is not None]

    async def _try(self, part: Sequence[Command]) -> list[Judged | Exception]:
        """An exception: not now."""
        try:
            known = await self._service.known_repeats(self._tenant, [command.repeat for command in part])
            new = [command for command in part if command.repeat.key not in known]
            done = dict(zip(map(id, new), await self._carry_out(new), strict=True))
            refused = [command for command in new if isinstance(done[id(command)], OnTheDotError)]
            if refused:  # another node may have had the same message at the same time
                known |= await self._service.known_repeats(self._tenant, [command.repeat for command in refused])
        except Exception as error:
            if not _is_away(error):
                raise
            return [error] * len(part)
        return [self._judge(command, known.get(command.repeat.key), done.get(id(command))) for command in part]

    def _judge(self, command: Command, known: bool | None, error: Exception | None) -> Judged | Exception:
        if error is None:
            return OK if known is None else REPEATED if known else Judged("refused", used_before(command))
        if known:
            return REPEATED
        return error if _is_away(error) else Judged("refused", _below(command, error))

    async def _carry_out(self, commands: Sequence[Command]) -> list[Exception | None]:
        """None: it is in the store."""
        if not commands:
            return []
        if commands[0].op == "create":
            return await self._create(commands)
        return await asyncio.gather(*map(self._one, commands))

    async def _create(self, commands: Sequence[Command]) -> list[Exception | None]:
        specs = [self._forbidden(command) or _spec(command) for command in commands]
        try:
            made = await self._service.create_each(self._tenant, specs, [command.repeat for command in commands])
        except Exception as error:  # a bug that one of them meets must not keep the others
            if len(commands) == 1 or _is_away(error):
                return [error] * len(commands)
            return [(await self._create([command]))[0] for command in commands]
        return [
            None
            if not isinstance(answer, OnTheDotError)
            or (isinstance(answer, Conflict) and await self._service.is_job(self._tenant, _spec(command)))
            else answer
            for command, answer in zip(commands, made, strict=True)
        ]

    async def _one(self, command: Command) -> Exception | None:
        async with self._turns:
            try:
                if (forbidden := self._forbidden(command)) is not None:
                    return forbidden
                await self._verb(command)
            except Exception as error:  # a bug that one message meets must not keep those behind it
                return error
        return None

    async def _verb(self, command: Command) -> None:
        service, tenant, does, repeat = self._service, self._tenant, command.does, command.repeat
        if isinstance(does, PutCommand) and does.key is not None:
            await service.put_job_by_key(tenant, does.key, does.job, idempotency=repeat)
            return
        job_id = does.id or (await service.get_job_by_key(tenant, does.key or "")).id
        match does:
            case PutCommand():
                await service.replace_job(tenant, job_id, does.job, idempotency=repeat)
            case PatchCommand():
                await service.patch_job(tenant, job_id, does.patch, idempotency=repeat)
            case PauseCommand():
                await service.pause_job(tenant, job_id, None, repeat, does.note, does.until)
            case ResumeCommand():
                await service.resume_job(tenant, job_id, None, repeat)
            case RunCommand():
                await service.run_job(tenant, job_id, repeat, None, does.params)
            case DeleteCommand():
                await service.delete_job(tenant, job_id, idempotency=repeat)

    def _forbidden(self, command: Command) -> Forbidden | None:
        if command.op in self._allow:
            return None
        return Forbidden(f"this intake does not allow {command.op!r}; it allows {', '.join(sorted(self._allow))}")


def _spec(command: Command) -> JobSpec:
    assert isinstance(command.does, CreateCommand)
    return command.does.job


def _is_away(error: Exception) -> bool:
    """Nobody's fault, and it may be otherwise in a moment."""
    return isinstance(error, (StoreError, Abandoned, ObjectStoreUnavailable)) and not isinstance(error, ObjectMissing)


def _below(command: Command, error: Exception) -> Exception:
    """With paths as they are in the message."""
    within = "job" if isinstance(command.does, CreateCommand) else "patch" if command.op == "patch" else None
    if within is None or not isinstance(error, Invalid):
        return error
    problems = [
        msgspec.structs.replace(each, path=within if each.path == "$" else f"{within}.{each.path}")
        for each in error.problems
    ]
    return type(error)(problems)
