"""Destinations: waiting for one changes nothing of a run, none has more calls of a node than it may while the node's
slots are taken, an open breaker lets one call out in ten seconds, and what waits goes when its host is well."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise, zip_longest

from proof.checker.events import Received, Waited
from proof.checker.lives import Turn
from proof.checker.story import Story, Violation, merged
from proof.model.rules import Rules

__all__ = ["check_destinations", "host_called"]

BEFORE = 250
"""ms before a call arrives in which its node has started it: it may wait inside, or be started ahead of its time."""
FAILURES, PROBE = 10, 10_000
FORGOTTEN = PROBE + 60_000 - 2 * BEFORE
"""ms without a call after which nobody remembers that a breaker was open."""
SENT_WITHIN = 40_000
"""ms after a host is well again until what waits for it is claimed: the next probe, and those that waited longer. What
waits for its lane meanwhile does not wait for its host."""


def check_destinations(story: Story) -> Iterator[Violation]:
    if not story.ledger.hosts:
        return
    for waits in story.waits.values():
        for wait in waits:
            yield from _changed_nothing(story, wait)
            yield from _is_sent_in_the_end(story, wait)
    for node, turns in _calls(story).items():
        yield from _limited(story, node, turns)
        for host in sorted({_host(turn) for turn in turns}):
            yield from _probed(story, node, host, [turn for turn in turns if _host(turn) == host])


def _changed_nothing(story: Story, wait: Waited) -> Iterator[Violation]:
    again = wait.now.token in story.lives.turns.get(wait.run, {})  # it was claimed before the database was asked again
    if wait.now != wait.before and not (again and wait.now.token > wait.token):
        text = f"{wait.run} waits for {wait.host} and is {wait.now}, it was {wait.before}"
        yield Violation(kind="waiting", text=text)
    turn = story.lives.turns.get(wait.run, {}).get(wait.token)
    if turn is not None and turn.send is not None:
        yield Violation(kind="waiting", text=f"{wait.run} waits for {wait.host}, and was sent with {wait.token}")


def _is_sent_in_the_end(story: Story, wait: Waited) -> Iterator[Violation]:
    """Unless somebody changed its job, or something else was wrong."""
    later = (turn.claim.at for turn in story.lives.turns[wait.run].values() if turn.token > wait.token)
    claimed = min(later, default=None)
    if claimed is not None and claimed <= wait.at + SENT_WITHIN:
        return
    well, held = wait.at, merged(_lane_was_held(story, wait))
    for fault in sorted((f for f in story.faults if f.what == "host" and f.node == wait.host), key=lambda f: f.at):
        if fault.at <= _free_for(SENT_WITHIN, well, held) and fault.until >= well:
            well = fault.until
    end, job = _free_for(SENT_WITHIN, well, held), int(wait.run.partition("-")[0])
    if claimed is not None and claimed <= end:
        if claimed > well + SENT_WITHIN:
            story.excuse("it waited for its lane when its destination was well")
        return
    if story.ledger.at < end:
        return
    if story.lives.touched(job, wait.at, end) or not story.quiet(well - PROBE, end):
        story.excuse("its job was changed or something was wrong while it waited for its destination")
        return
    entry = story.entries.get(wait.run)
    if claimed is None and entry is not None:
        return  # it ended without another claim: its job was cancelled or replaced
    yield Violation(
        kind="waiting", text=f"{wait.run} waited for {wait.host} from {wait.at} on, which was well at {well}"
    )


def _lane_was_held(story: Story, wait: Waited) -> Iterator[tuple[int, int]]:
    """When its job, whose runs may not overlap, certainly had another one running that was due before it. Those that
    were due later may not keep it waiting."""
    turn = story.lives.turns.get(wait.run, {}).get(wait.token)
    job = story.jobs.get(int(wait.run.partition("-")[0]))
    version = None if turn is None or job is None else story.lives.in_force(job.id, turn.place)
    if job is None or version is None or version.rules.overlap == "allow":
        return
    due = {row.id: row.due_at for row in job.rows}
    for run in due:
        if run != wait.run and due[run] <= due.get(wait.run, 0):
            turns = [other for _, other in sorted(story.lives.turns.get(run, {}).items())]
            for other, again in zip_longest(turns, turns[1:]):
                if other.send is not None:
                    over = _over(story, other, version.rules)
                    yield other.claim.at, over if again is None else min(over, again.claim.at)


def _over(story: Story, turn: Turn, rules: Rules) -> int:
    """When its try was over, at the earliest: what was accepted goes on until a callback ends it, or none came."""
    assert turn.send is not None
    sent, of = turn.send.at, turn.send.of
    if told := [event.at for event in story.callbacks.wrote(turn.run) if event.of == of and event.at >= sent]:
        return min(told)
    if turn.recorded is None:
        return sent
    waits = turn.recorded.outcome == "accepted" and of is not None and story.callbacks.too_late(turn.run, of)
    return turn.recorded.at + ((rules.callback or 0) if waits else 0)


def _free_for(long: int, begin: int, held: list[tuple[int, int]]) -> int:
    """When so many ms will have passed from `begin` on in which nobody held it."""
    end = begin + long
    for since, until in held:
        if since < end and until > begin:
            end += until - max(since, begin)
    return end


def _calls(story: Story) -> dict[str, list[Turn]]:
    """Webhooks that arrived, by the node that sent them, in their order."""
    found: dict[str, list[Turn]] = defaultdict(list)
    for turns in story.lives.turns.values():
        for turn in turns.values():
            if turn.send is not None and _host(turn):
                found[turn.claim.node].append(turn)
    for turns_of_node in found.values():
        turns_of_node.sort(key=_sent)
    return found


def _sent(turn: Turn) -> int:
    assert turn.send is not None
    return turn.send.at


def _host(turn: Turn) -> str:
    assert turn.send is not None
    return host_called(turn.send)


def host_called(send: Received) -> str:
    """Empty: it was no webhook."""
    url = (send.asked or {}).get("target", {}).get("url")
    return "" if url is None else f"http://host{int(url[-1]) % 3}"


def _ended(story: Story, turn: Turn) -> int:
    """The earliest that it can have ended. Of what was never recorded nobody knows."""
    assert turn.send is not None
    if turn.recorded is None:
        return _sent(turn)
    job = story.jobs.get(turn.send.job)
    longest = 800.0 if job is None else story.timeout(job, turn.send)
    ended = _sent(turn) + min(turn.send.took, longest, 3000) - BEFORE
    return int(min(ended, turn.recorded.at - BEFORE))


def _limited(story: Story, node: str, turns: list[Turn]) -> Iterator[Violation]:
    """Counted is what was certainly under way all the time in which this call must have got its slot."""
    slots = story.ledger.slots.get("webhook", 0)
    limit = max(1, slots // 4)
    ends = {id(turn): _ended(story, turn) for turn in turns}
    for place, turn in enumerate(turns):
        begin, end = _sent(turn) - BEFORE, _sent(turn)
        open_calls = [one for one in turns[:place] if _sent(one) <= begin and ends[id(one)] > end]
        here = sum(_host(one) == _host(turn) for one in open_calls)
        if here >= limit and 2 * len(open_calls) > slots:
            text = f"{turn.run} went to {_host(turn)} at {end}, which had {here} of {len(open_calls)} calls of {node}"
            yield Violation(kind="limit", text=text)


def _probed(story: Story, node: str, host: str, turns: list[Turn]) -> Iterator[Violation]:
    """After so many failures in a row one call in ten seconds, until one goes well or no call was made for long."""
    pauses = [place for place in range(1, len(turns)) if _sent(turns[place]) - _sent(turns[place - 1]) >= FORGOTTEN]
    for first, last in pairwise([0, *pauses, len(turns)]):
        yield from _probed_without_pause(story, node, host, turns[first:last])


def _probed_without_pause(story: Story, node: str, host: str, turns: list[Turn]) -> Iterator[Violation]:
    for place, turn in enumerate(turns):
        before = [one for one in turns[:place] if one.recorded is not None and one.recorded.at < _sent(turn) - BEFORE]
        before.sort(key=lambda one: 0 if one.recorded is None else one.recorded.at)
        answered = [_answered(one) for one in turns[:place] if one.recorded is None]  # by its callback, perhaps
        known = [one.recorded.at for one in before if one.recorded and _went_well(one)]
        well = max([*known, *(at for at in answered if at <= _sent(turn))], default=-1)
        failed = sorted(_ended(story, one) for one in before if _failed(one) and _sent(one) > well)
        if len(failed) < FAILURES or any(not _failed(one) for one in before if _sent(one) > well):
            continue
        counted = [_ended(story, one) for one in turns[:place] if not _went_well(one)]
        counted = [ended for ended in counted if ended > well - BEFORE]
        opened = sorted(counted)[FAILURES - 1]  # at the earliest: what was not recorded may have failed, too
        probes = [_sent(one) for one in turns[:place] if opened < _sent(one)]
        gap = _sent(turn) - max([opened, *probes])
        late = _sent(turn) - BEFORE <= opened  # it was started before
        if any(_answered_well(one, opened, _sent(turn)) for one in turns):
            continue
        if probes and not any(_sent(one) == max(probes) for one in before if _failed(one)):
            continue  # it was cancelled, perhaps, and then the next may follow at once
        if gap < PROBE - 2 * BEFORE and not late:
            text = f"{turn.run} went to {host} from {node} at {_sent(turn)}, {gap} ms after the call before it"
            yield Violation(kind="breaker", text=f"{text}; {len(failed)} failed in a row")


def _answered(turn: Turn) -> int:
    """When it was answered well; -1: it was not."""
    return turn.send.at + turn.send.took if turn.send is not None and turn.send.answer == "ok" else -1


def _answered_well(turn: Turn, begin: int, end: int) -> bool:
    """Whether it was answered in between: its node may have known before the database did."""
    return begin <= _answered(turn) <= end


def _went_well(turn: Turn) -> bool:
    return turn.recorded is not None and turn.recorded.outcome in ("ok", "accepted")


def _failed(turn: Turn) -> bool:
    assert turn.send is not None
    if turn.recorded is None:
        return False
    return turn.recorded.outcome == "timeout" or (
        turn.recorded.outcome == "error" and turn.send.answer in ("error", "cut")
    )
