"""What a message says: one operation on one job, in the words of the API, bare or as the data of a CloudEvent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from onthedot.brokers.reader import Received
from onthedot.errors import IdempotencyMismatch, Invalid, TooLarge
from onthedot.intake.repeated_fields import refuse_repeated_fields
from onthedot.model.decoding import convert, decode_json
from onthedot.model.job import ACCEPTED_KEYS, KEY_PATTERN, JobSpec
from onthedot.model.portions import check_values
from onthedot.model.struct import Strict
from onthedot.service.aside import SMALL_BYTES
from onthedot.service.repeats import Idempotency, canonical, fingerprint

__all__ = [
    "LARGEST",
    "Command",
    "CreateCommand",
    "DeleteCommand",
    "JobCommand",
    "PatchCommand",
    "PauseCommand",
    "PutCommand",
    "ResumeCommand",
    "RunCommand",
    "read_all",
    "used_before",
]

LARGEST = 1 << 20
"""Bytes of a message: as many as a request that creates a job may have."""
CHAINED = ("on_success", "on_failure", "on_finish")
EVENT_TYPE = "onthedot.job."
LONGEST_ID = 120

Key = Annotated[str, msgspec.Meta(pattern=KEY_PATTERN, description=ACCEPTED_KEYS)]
JobNumber = Annotated[int, msgspec.Meta(ge=1)]
MessageId = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
PauseReason = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class JobCommand(Strict, frozen=True, kw_only=True):
    """One operation. The job is named by `key` or by `id`. `message_id`: the same whenever it is sent."""

    key: Key | None = None
    id: JobNumber | None = None
    message_id: MessageId | None = None

    def names(self) -> set[str]:
        """Keys of the jobs that it touches or needs. One with an id may touch any."""
        return {self.key} if self.key is not None else set()


class CreateCommand(JobCommand, frozen=True, kw_only=True):
    job: JobSpec

    def names(self) -> set[str]:
        return super().names() | _chained({name: getattr(self.job, name, None) for name in CHAINED})


class PutCommand(CreateCommand, frozen=True, kw_only=True):
    """Creates the job of a key, or replaces a job."""


class PatchCommand(JobCommand, frozen=True, kw_only=True):
    patch: dict[str, Any]

    def names(self) -> set[str]:
        renamed = self.patch.get("key")
        return super().names() | ({renamed} if isinstance(renamed, str) else set()) | _chained(self.patch)


class PauseCommand(JobCommand, frozen=True, kw_only=True):
    note: PauseReason | None = None
    until: str | None = None


class ResumeCommand(JobCommand, frozen=True, kw_only=True):
    pass


class RunCommand(JobCommand, frozen=True, kw_only=True):
    params: dict[str, Any] | None = None


class DeleteCommand(JobCommand, frozen=True, kw_only=True):
    pass


COMMANDS: dict[str, type[JobCommand]] = {
    "create": CreateCommand,
    "put": PutCommand,
    "patch": PatchCommand,
    "pause": PauseCommand,
    "resume": ResumeCommand,
    "run": RunCommand,
    "delete": DeleteCommand,
}


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What was read from a message, and what a repeat of it is recognised by."""

    received: Received
    op: str
    does: JobCommand
    repeat: Idempotency


def read_all(intake: str, messages: list[Received]) -> Iterator[Command | Exception]:
    """One answer for each, in order: the command, or what is wrong with it."""
    for message in messages:
        try:
            yield _read(intake, message)
        except Exception as error:  # also a bug of ours: those behind it are not kept
            yield error


def _read(intake: str, message: Received) -> Command:
    raw = message.body
    if len(raw) > LARGEST:
        raise TooLarge(f"the message has {len(raw):,} bytes; at most {LARGEST:,} are accepted")
    if len(raw) > SMALL_BYTES:
        check_values(raw)
    loose: Any = decode_json(raw, Any)
    refuse_repeated_fields(raw)
    sent_as, path = None, ""
    if isinstance(loose, dict) and "specversion" in loose:
        loose, sent_as = _data_of(loose)
        path = "data"
    if not isinstance(loose, dict):
        raise Invalid.one(path or "$", "must be an object", accepted='such as {"op": "create", "job": {…}}')
    op = loose.get("op")
    if not isinstance(op, str) or op not in COMMANDS:
        raise Invalid.one(
            f"{path}.op" if path else "op",
            "missing" if "op" not in loose else "unknown operation",
            given=op,
            accepted=", ".join(COMMANDS),
        )
    given = {name: value for name, value in loose.items() if name != "op"}
    does = _addressed(op, convert(given, COMMANDS[op], path=path), f"{path}." if path else "")
    ids = (does.message_id, sent_as, message.id, message.place)
    known_as = next((each for each in ids if each is not None), None)
    if known_as is None:
        raise Invalid.one(
            "message_id",
            "missing: this broker does not number its messages, so a second delivery could not be recognised",
            accepted="message_id in the message, or the broker's property message_id; the same whenever it is sent",
        )
    return Command(received=message, op=op, does=does, repeat=_repeat(intake, known_as, raw))


def _data_of(event: dict[str, Any]) -> tuple[Any, str]:
    """The data of a CloudEvent, with the operation and the key that its attributes name; and what it is known by."""
    for name in ("id", "source", "type"):
        if not isinstance(event.get(name), str) or not event[name]:
            raise Invalid.one(name, "missing: required in a CloudEvent", given=event.get(name), accepted="a text")
    if event["specversion"] != "1.0":
        raise Invalid.one("specversion", "unknown version", given=event["specversion"], accepted="1.0")
    data = event.get("data", {})
    if "data_base64" in event or not isinstance(data, dict):
        raise Invalid.one("data", "must be an object", accepted="an operation as a JSON object, in data")
    kind, subject = event["type"], event.get("subject")
    if "op" not in data and kind.startswith(EVENT_TYPE):
        data = {**data, "op": kind.removeprefix(EVENT_TYPE)}
    if isinstance(subject, str) and subject and "key" not in data and "id" not in data:
        data = {**data, "key": subject}
    return data, f"{event['source']}#{event['id']}"


def _addressed(op: str, does: JobCommand, path: str) -> JobCommand:
    """With the key in both places. Invalid unless it names exactly one job; a new one need not have a key."""
    if op == "create" and does.id is not None:
        raise Invalid.one(f"{path}id", "a new job gets its id from the store", given=does.id, accepted="no id")
    if isinstance(does, CreateCommand) and does.id is None:
        key = does.key or does.job.key
        if does.job.key is not None and does.job.key != key:
            accepted = f"{does.job.key}, the key of the job"
            raise Invalid.one(f"{path}key", "differs from the key of the job", given=does.key, accepted=accepted)
        does = msgspec.structs.replace(does, key=key, job=msgspec.structs.replace(does.job, key=key))
    if op != "create" and (does.key is None) == (does.id is None):
        problem = "missing" if does.key is None else "given together with id"
        raise Invalid.one(f"{path}key", problem, given=does.key, accepted="either key or id, to name the job")
    return does


def _repeat(intake: str, known_as: str, raw: bytes) -> Idempotency:
    if len(known_as) > LONGEST_ID or not known_as.isascii() or not known_as.isprintable():
        known_as = f"sha256:{hashlib.sha256(known_as.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return Idempotency(f"intake/{intake}/{known_as}", fingerprint("intake", canonical(raw), intake))


def _chained(spec: dict[str, Any]) -> set[str]:
    """Keys of other jobs that it names: those must be there before it is."""
    named: set[str] = set()
    for name in CHAINED:
        given = spec.get(name)
        named |= {given} if isinstance(given, str) else {each for each in given or () if isinstance(each, str)}
    return named


def used_before(command: Command) -> Invalid:
    return IdempotencyMismatch.one(
        "message_id",
        "was already used for a different message",
        given=command.repeat.key.split("/", 2)[2],
        accepted="a new id for a new message",
    )
