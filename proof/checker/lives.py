"""The life of each run as the database's diary and the receiver tell it: who claimed it, with what spec, what was sent,
what was recorded. In the order of the commits, so that "before" and "after" are facts and no grey zones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from proof.checker.events import Begun, Claimed, Froze, History, Received, Recorded, Wrote
from proof.model.rules import Rules, rules_of
from proof.oracle.slots import is_one_off

__all__ = ["Lives", "Turn", "Version"]


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A job's spec from this commit on. number: as the API counts. place: of the commit in the history."""

    place: int
    at: int
    db: int
    number: int
    verb: str
    spec: dict[str, Any]
    rules: Rules


class Turn(msgspec.Struct, kw_only=True):
    """One claim of a run, and what came of it."""

    run: str
    token: int
    place: int
    claim: Claimed
    send: Received | None = None
    recorded: Recorded | None = None
    begun: bool = False  # the database was told so
    begun_db: int | None = None  # when it was first


class Lives:
    def __init__(self, history: History) -> None:
        self.versions: dict[int, list[Version]] = defaultdict(list)
        self.turns: dict[str, dict[int, Turn]] = defaultdict(dict)
        self.cancels: dict[str, list[Wrote]] = defaultdict(list)
        self.wrote: dict[int, list[tuple[int, Wrote]]] = defaultdict(list)
        self.skips: dict[str, list[tuple[int, Wrote]]] = defaultdict(list)  # of a run, in their order: skip, unskip, …
        self.freezes: list[tuple[int, Froze]] = []
        self.mistaken: list[str] = []  # verbs that should not have been carried out, or answered so
        for place, event in enumerate(history):
            match event:
                case Wrote():
                    self._wrote(place, event)
                case Froze():
                    self.freezes.append((place, event))
                case Claimed():
                    claimed = Turn(run=event.run, token=event.token, place=place, claim=event)
                    self.turns[event.run].setdefault(event.token, claimed)
                case Received():
                    if (turn := self._turn(event)) is not None and turn.send is None:
                        turn.send = event
                case Begun():
                    if (turn := self._turn(event)) is not None:
                        turn.begun_db = event.db if not turn.begun else turn.begun_db
                        turn.begun = True
                case Recorded():
                    if (turn := self._turn(event)) is not None:
                        turn.recorded = event

    def adopts(self, run: str, token: int) -> bool:
        """Whether with this claim somebody goes on with what was begun under an earlier one."""
        return any(turn.begun for earlier, turn in self.turns.get(run, {}).items() if earlier < token)

    def _turn(self, event: Received | Begun | Recorded) -> Turn | None:
        return self.turns[event.run].get(event.token) if event.run in self.turns else None

    def _wrote(self, place: int, event: Wrote) -> None:
        self.wrote[event.job].append((place, event))
        versions = self.versions[event.job]
        if event.verb == "cancel":
            self.cancels[event.runs[0]].append(event)
        if event.verb in ("skip", "unskip"):
            self.skips[event.runs[0]].append((place, event))
        if event.number is not None:
            if event.wish is not None:
                self._add(versions, place, event, event.wish, event.number)
            return
        if event.verb == "create":
            if not versions:  # a repeat is answered with the job that there is
                self._add(versions, place, event, event.wish or {}, 1)
            return
        if not versions:
            return
        if event.if_match is not None and event.if_match != versions[-1].number:
            told = f"job {event.job}: {event.verb} of version {event.if_match} was done to {versions[-1].number}"
            self.mistaken.append(told)
        spec = versions[-1].spec
        if event.verb == "edit":
            changed = {**spec, **(event.wish or {})}
        elif event.verb in ("pause", "resume") and (event.view or {}).get("state") == "ended":
            if not _may_end(spec["schedule"]):
                self.mistaken.append(f"job {event.job} is {event.verb}d and told that it has ended")
            if event.verb == "pause" or self._ended_while_paused(event, versions[-1]):
                return  # there is nothing to pause or to resume any more
            changed = {**spec, "paused": False}  # its last slot passed in the pause: the resume itself ends it
        elif event.verb in ("pause", "resume"):
            changed = {**spec, "paused": event.verb == "pause"}
        else:
            return
        if changed != spec:
            self._add(versions, place, event, changed, versions[-1].number + 1)

    def _ended_while_paused(self, event: Wrote, last: Version) -> bool:
        """Nothing of a paused job is claimed: it ends when its only firing, begun before, does, when its last slot is
        cancelled, or by an edit to times that have all passed."""
        if is_one_off(last.spec["schedule"]):
            return True
        since = [one for place, one in self.wrote[event.job] if place >= last.place and one is not event]
        could = any(one.verb in ("cancel", "skip") or (one.view or {}).get("state") == "ended" for one in since)
        return could and (event.view or {}).get("version") == last.number

    def _add(self, versions: list[Version], place: int, event: Wrote, spec: dict[str, Any], number: int) -> None:
        versions.append(
            Version(
                place=place,
                at=event.at,
                db=event.db,
                number=number,
                verb=event.verb,
                spec=spec,
                rules=rules_of(spec),
            )
        )

    def in_force(self, job: int, place: int) -> Version | None:
        """What a claim at this place of the history read of the job."""
        found = None
        for version in self.versions.get(job, ()):
            if version.place > place:
                break
            found = version
        return found

    def written(self, job: int) -> list[int]:
        """When its spec was committed anew, by a user who was never told so or by a file, too: true times."""
        return [version.at for version in self.versions.get(job, ())]

    def touched(self, job: int, begin: int, end: int) -> bool:
        """Whether a user's verb on it, or on everything, was committed between these true times."""
        return any(begin <= event.at <= end for _, event in [*self.wrote.get(job, ()), *self.freezes])

    def left_out(self, run: str, at: int) -> bool:
        """Whether its slot was left out by a user by this true time, and not taken back."""
        verbs = [event.verb for _, event in self.skips.get(run, ()) if event.at <= at]
        return bool(verbs) and verbs[-1] == "skip"

    def frozen(self) -> Iterator[tuple[tuple[int, Froze], tuple[int, Froze] | None]]:
        """When everything was paused, and when it went on; None: not yet."""
        for number, (place, event) in enumerate(self.freezes):
            if event.on:
                yield (place, event), next(iter(self.freezes[number + 1 :]), None)


def _may_end(schedule: dict[str, Any]) -> bool:
    return bool({"at", "in", "count", "end"} & schedule.keys())
