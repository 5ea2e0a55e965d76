"""A group of creates: who repeats an earlier request, who wants a key that another has, and the rest are written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from onthedot.errors import Conflict, OnTheDotError
from onthedot.model.job import JobView
from onthedot.store.driver import Transaction
from onthedot.store.jobs.chains import check_chains, lock_tenants
from onthedot.store.jobs.create import Fresh, NewJob, past, plan_in_breaths
from onthedot.store.jobs.create_rows import insert_fresh, key_taken, views_of
from onthedot.store.jobs.idempotency import claim_keys, mismatch, release_keys
from onthedot.store.jobs.sequences import open_group
from onthedot.store.jobs.views import read_views

__all__ = ["Answer", "create_group"]

Answer = JobView | OnTheDotError


async def create_group(tx: Transaction, items: Sequence[NewJob]) -> list[Answer]:
    """One answer per item, in order. Those that name others to follow them may name each other."""
    if not items:
        return []
    await lock_tenants(tx, (item.tenant for item in items if item.spec.chained))
    now, ids = await open_group(tx, len(items))
    answers: dict[int, Answer] = {}
    fresh: dict[int, Fresh] = {}
    for place, planned in enumerate(await plan_in_breaths(tx, items, ids, now)):
        if (gone := items[place].abandoned(now)) is not None:
            answers[place] = gone
        elif not isinstance(planned, Fresh):
            answers[place] = planned
        elif items[place].idempotency is None and (refusal := past(planned, now)) is not None:
            answers[place] = refusal
        else:
            fresh[place] = planned
    if all(item.idempotency is None for item in items):
        await _write(tx, list(fresh), fresh, answers, now)
        return [answers[place] for place in range(len(items))]
    followers = _repeats_within(items, fresh, answers)
    leaders = [place for place in fresh if items[place].idempotency and place not in answers and place not in followers]
    await _answer_earlier(tx, items, fresh, leaders, answers, now)
    new = [place for place in fresh if place not in answers and place not in followers]
    await _refuse_past(tx, items, new, fresh, answers)
    await _write(tx, [place for place in new if place not in answers], fresh, answers, now)
    await _forget_failed(tx, items, new, answers)
    for place, leader in followers.items():
        answers[place] = answers[leader]
    return [answers[place] for place in range(len(items))]


def _repeats_within(items: Sequence[NewJob], fresh: dict[int, Fresh], answers: dict[int, Answer]) -> dict[int, int]:
    """Items that ask the same as one before them in this group: place → that one's place."""
    first: dict[tuple[int, str], int] = {}
    followers = {}
    for place in fresh:
        repeat = items[place].idempotency
        if repeat is None:
            continue
        leader = first.setdefault((items[place].tenant, repeat.key), place)
        if leader != place:
            if items[leader].idempotency == repeat:
                followers[place] = leader
            else:
                answers[place] = mismatch(repeat.key)
    return followers


async def _answer_earlier(
    tx: Transaction,
    items: Sequence[NewJob],
    fresh: dict[int, Fresh],
    leaders: Sequence[int],
    answers: dict[int, Answer],
    now: int,
) -> None:
    """Repeats of requests from before this group get the job that was made then."""
    wanted = [(items[place].tenant, items[place].idempotency, str(fresh[place].id)) for place in leaders]
    kept = await claim_keys(tx, [(tenant, repeat, answer) for tenant, repeat, answer in wanted if repeat], now)
    earlier: dict[int, dict[int, int]] = defaultdict(dict)  # tenant → place → job
    for place, (tenant, repeat, _) in zip(leaders, wanted, strict=True):
        answer = kept.get((tenant, repeat.key)) if repeat else None
        if isinstance(answer, str) and answer.isdecimal():
            earlier[tenant][place] = int(answer)
        elif isinstance(answer, str) and repeat:
            answers[place] = mismatch(repeat.key)
        elif isinstance(answer, OnTheDotError):
            answers[place] = answer
    for tenant, jobs in earlier.items():
        views = await read_views(tx, tenant, list(jobs.values()))
        gone = Conflict("the job created with this Idempotency-Key was deleted")
        answers.update({place: views.get(job_id, gone) for place, job_id in jobs.items()})


async def _refuse_past(
    tx: Transaction,
    items: Sequence[NewJob],
    places: Sequence[int],
    fresh: dict[int, Fresh],
    answers: dict[int, Answer],
) -> None:
    """Only what is certainly no repeat is judged, and by the time it is after having waited for others with its key:
    one that another refused as past meanwhile must not be made."""
    dated = [place for place in places if items[place].idempotency and fresh[place].spec.schedule.in_ is None]
    if not dated:
        return
    now = await tx.now()
    for place in dated:
        if (refusal := past(fresh[place], now)) is not None:
            answers[place] = refusal


async def _write(
    tx: Transaction, places: Sequence[int], fresh: dict[int, Fresh], answers: dict[int, Answer], now: int
) -> None:
    """Of several that want the same key the first is written: within one statement nobody could say which it was."""
    first: dict[tuple[int, str], Fresh] = {}
    writing: list[int] = []
    if any(fresh[place].spec.chained for place in places):
        answers.update(await _unchainable(tx, places, fresh))
        places = [place for place in places if place not in answers]
    for place in places:
        job = fresh[place]
        if job.spec.key is None or first.setdefault((job.tenant, job.spec.key), job) is job:
            writing.append(place)
    jobs = [fresh[place] for place in writing]
    refused = await insert_fresh(tx, jobs, now)
    if not first:  # no keys, so nothing was refused: the common case, by the thousand
        answers.update(zip(writing, views_of(jobs, now), strict=True))
        return
    for place in places:
        job = fresh[place]
        holder = job if job.spec.key is None else first[job.tenant, job.spec.key]
        if holder.id in refused:
            answers[place] = refused[holder.id]
        else:
            answers[place] = job.view(now) if holder is job else key_taken(job.spec.key, holder.id)


async def _unchainable(tx: Transaction, places: Sequence[int], fresh: dict[int, Fresh]) -> dict[int, Answer]:
    """Those that can't be because of whom they name. One whose key another has is not written: it is the other that is
    named."""
    refused: dict[int, Answer] = {}
    for tenant in sorted({fresh[place].tenant for place in places if fresh[place].spec.chained}):
        of_tenant = {place: fresh[place].spec for place in places if fresh[place].tenant == tenant}
        keys = sorted({spec.key for spec in of_tenant.values() if spec.key is not None})
        there = await tx.rows("lock_named", tenant, keys)
        taken = {row["key"] for row in there}
        new = [place for place, spec in of_tenant.items() if spec.key is None or spec.key not in taken]
        found = await check_chains(tx, tenant, [of_tenant[place] for place in new])
        refused |= {new[nth]: invalid for nth, invalid in found.items()}
    return refused


async def _forget_failed(
    tx: Transaction, items: Sequence[NewJob], written: Sequence[int], answers: dict[int, Answer]
) -> None:
    """A request that was refused may be put right and sent again under the same key."""
    failed = []
    for place in written:
        repeat = items[place].idempotency
        if repeat is not None and isinstance(answers[place], OnTheDotError):
            failed.append((items[place].tenant, repeat.key))
    await release_keys(tx, failed)
