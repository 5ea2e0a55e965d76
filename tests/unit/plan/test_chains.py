"""Which jobs can follow which: checked against a plain search, for any graph."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.model.chains import LONGEST_CHAIN, chain_problems, followers
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.run import run_id
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.plan import chain_number, chain_objections
from onthedot.plan.chains import find_cycles, lengths

KEYS = [f"k{n}" for n in range(7)]
GRAPHS = st.dictionaries(st.sampled_from(KEYS), st.lists(st.sampled_from(KEYS), max_size=3, unique=True))


def job(key: str | None, **edges: Any) -> JobSpec:
    return JobSpec(key=key, schedule=Schedule(in_=Duration(1)), target=WebhookTarget(url="http://x.example"), **edges)


def reached(graph: dict[str, list[str]], start: str) -> set[str]:
    """All that follows, by the plainest search there is."""
    found: set[str] = set()
    left = list(graph.get(start, []))
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += graph.get(name, [])
    return found


@given(GRAPHS)
@settings(max_examples=100)
def test_there_is_a_cycle_if_and_only_if_a_job_follows_itself(graph: dict[str, list[str]]):
    cycles = find_cycles(graph)
    assert bool(cycles) == any(name in reached(graph, name) for name in graph)
    for cycle in cycles:
        assert len(set(cycle)) == len(cycle)
        for name, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert after in graph[name]
    assert len({name for cycle in cycles for name in cycle}) == sum(map(len, cycles))


@given(GRAPHS)
@settings(max_examples=100)
def test_lengths_are_those_of_the_longest_walk(graph: dict[str, list[str]]):
    cyclic = {name for cycle in find_cycles(graph) for name in cycle}
    graph = {name: [key for key in keys if key not in cyclic] for name, keys in graph.items() if name not in cyclic}

    def longest(name: str) -> int:
        return 1 + max((longest(key) for key in graph.get(name, [])), default=0)

    assert all(length == longest(name) for name, length in lengths(graph).items())


@given(GRAPHS, st.sets(st.sampled_from(KEYS)), GRAPHS)
@settings(max_examples=100)
def test_what_is_left_of_a_group_hangs_together(
    wanted: dict[str, list[str]], there: set[str], before: dict[str, list[str]]
):
    """Whatever is asked for: the jobs that are not refused name only jobs that are there, and no job follows itself."""
    known = {
        name: [key for key in keys if key > name and key in there] for name, keys in before.items() if name in there
    }
    specs = [job(key, on_success=keys) for key, keys in wanted.items()]
    refused = chain_objections(specs, there - set(wanted), {k: v for k, v in known.items() if k not in wanted})
    left = {key: keys for place, (key, keys) in enumerate(wanted.items()) if place not in refused}
    all_there = (there - set(wanted)) | set(left)
    assert all(key in all_there for keys in left.values() for key in keys)
    joined = {**{k: v for k, v in known.items() if k not in wanted}, **left}
    assert not any(name in reached(joined, name) for name in joined)
    for problems in refused.values():
        assert all(problem.path.startswith("on_success[") for problem in problems)


def test_a_chain_of_thousands_in_one_file_is_refused_without_ado():
    specs = [job(f"j{n}", on_finish=[f"j{n + 1}"]) for n in range(5000)] + [job("j5000")]
    refused = chain_objections(specs, (), {})
    assert len(refused) == 5000
    assert refused[0][0].message == "this job would be in a chain of 5001 jobs"
    assert refused[0][0].accepted == f"at most {LONGEST_CHAIN} jobs in a chain"


def test_jobs_without_a_key_are_followed_but_follow_nobody():
    assert chain_objections([job(None, on_success=["a"]), job(None, on_success=["a"]), job("a")], (), {}) == {}


def test_who_follows_which_end():
    spec = job("a", on_success=["b"], on_failure=["c"], on_finish=["d"])
    assert (followers(spec, done=True), followers(spec, done=False)) == (["b", "d"], ["c", "d"])
    assert followers(job("a", on_success=["b"]), done=False) == []
    assert spec.chained
    assert not job("a", on_success=[]).chained


def test_no_end_starts_a_job_twice():
    spec = job("a", on_success=["b", "b"], on_failure=["c"], on_finish=["c"])
    found = {problem.path: problem.message for problem in chain_problems(spec)}
    assert set(found) == {"on_success[1]", "on_failure[0]"}
    assert list(chain_problems(job("a", on_success=["b"], on_failure=["b"]))) == []


def test_the_number_of_a_run_is_told_by_the_one_that_ended():
    numbers = {chain_number(run_id(job, slot)) for job in range(1, 100) for slot in range(1000, 1100)}
    assert len(numbers) == 99 * 100
    assert all(0 <= number < 2**52 for number in numbers)
    assert chain_number("7-1700000000000") == chain_number("7-1700000000000")
