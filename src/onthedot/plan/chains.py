"""Which jobs can follow which: no unknown keys, no cycles, and no chain that is too long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b

from onthedot.errors import FieldProblem
from onthedot.model.chains import LONGEST_CHAIN, edges_of
from onthedot.model.job import JobSpec

__all__ = ["Graph", "chain_number", "chain_objections", "find_cycles", "lengths"]

Graph = Mapping[str, Collection[str]]
"""What follows each job, by key."""

Objections = dict[int, list[FieldProblem]]

SHOWN = 20


def chain_number(run_id: str) -> int:
    """The `n` of the runs that the end of this run starts: told by its id, so that an end can start a job once only."""
    return int.from_bytes(blake2b(run_id.encode(), digest_size=8).digest()) >> 12


def chain_objections(specs: Sequence[JobSpec], there: Collection[str], graph: Graph) -> Objections:
    """Which of the jobs that are to be written (together) can't be, by place, and why.

    `there`: keys of other jobs, as they will be; `graph`: what follows those of them that matter: whatever comes
    before or after one of ours. A job that is refused is not there for the others either.
    """
    refused: Objections = {}
    names = [spec.key or f"#{place}" for place, spec in enumerate(specs)]  # no key has a #: nobody names those
    while True:
        left = {name: place for place, name in enumerate(names) if place not in refused}
        found = _unknown(specs, left, there)
        if not found:
            joined = _joined(specs, left, graph)
            found = _in_cycles(specs, left, joined) or _too_long(specs, left, joined)
        if not found:
            return refused
        refused |= found


def _unknown(specs: Sequence[JobSpec], left: Mapping[str, int], there: Collection[str]) -> Objections:
    """Those that name what is not there; and those that name them, if they were to be written only now."""
    naming: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for place in left.values():
        for field, nth, key in edges_of(specs[place]):
            naming[key].append((place, f"{field}[{nth}]"))
    missing = [key for key in naming if key not in left and key not in there]
    found: Objections = {}
    while missing:
        key = missing.pop()
        for place, path in naming.get(key, ()):
            if place not in found and specs[place].key is not None and specs[place].key not in there:
                missing.append(str(specs[place].key))
            found.setdefault(place, []).append(
                FieldProblem(
                    path=path,
                    message="no job has this key",
                    given=key,
                    accepted="the key of a job that exists, or of a valid one in the same file or batch",
                )
            )
    return found


def _in_cycles(specs: Sequence[JobSpec], left: Mapping[str, int], graph: Graph) -> Objections:
    found: Objections = {}
    accepted = "keys that do not lead back to this job"
    for cycle in find_cycles(graph):
        for turn, name in enumerate(cycle):
            if name in left:
                around = [*cycle[turn:], *cycle[:turn], name]
                message = f"the jobs would start each other forever: {_shown(around)}"
                found[left[name]] = [_along(specs[left[name]], around[1], message, accepted)]
    return found


def _too_long(specs: Sequence[JobSpec], left: Mapping[str, int], graph: Graph) -> Objections:
    after = lengths(graph)
    if max(after.values(), default=0) <= LONGEST_CHAIN:
        return {}
    before = lengths(_turned(graph))
    found: Objections = {}
    for name, place in left.items():
        jobs = before[name] + after[name] - 1
        if jobs > LONGEST_CHAIN and graph[name]:
            follower = max(graph[name], key=lambda key: after[key])
            message = f"this job would be in a chain of {jobs} jobs"
            accepted = f"at most {LONGEST_CHAIN} jobs in a chain"
            found[place] = [_along(specs[place], follower, message, accepted)]
    return found


def _shown(names: list[str]) -> str:
    """Both ends of a long one."""
    if len(names) > SHOWN:
        names = [*names[: SHOWN // 2], "…", *names[-SHOWN // 2 :]]
    return " → ".join(names)


def _joined(specs: Sequence[JobSpec], left: Mapping[str, int], graph: Graph) -> dict[str, list[str]]:
    new = {name: [key for _, _, key in edges_of(specs[place])] for name, place in left.items()}
    return {**{name: list(keys) for name, keys in graph.items()}, **new}


def _along(spec: JobSpec, to: str, message: str, accepted: str) -> FieldProblem:
    path = next((f"{field}[{nth}]" for field, nth, key in edges_of(spec) if key == to), "key")
    return FieldProblem(path=path, message=message, given=to, accepted=accepted)


def _turned(graph: Graph) -> dict[str, list[str]]:
    turned: dict[str, list[str]] = {name: [] for name in graph}
    for name, keys in graph.items():
        for key in keys:
            turned.setdefault(key, []).append(name)
    return turned


def find_cycles(graph: Graph) -> list[list[str]]:
    """Cycles without a job in common, until none is left: each of their jobs once, in the order in which they follow
    each other."""
    left = {name: list(keys) for name, keys in graph.items()}
    cycles: list[list[str]] = []
    done: set[str] = set()
    for start in graph:
        while start in left and (cycle := _cycle_from(left, start, done)) is not None:
            cycles.append(cycle)
            for name in cycle:
                del left[name]
    return cycles


def _cycle_from(graph: Graph, start: str, done: set[str]) -> list[str] | None:
    path: list[str] = []
    on_path: set[str] = set()
    for name, ends in _walk(graph, start, done):
        if ends:
            path.pop()
            on_path.discard(name)
            done.add(name)
        elif name in on_path:
            return path[path.index(name) :]
        else:
            path.append(name)
            on_path.add(name)
    return None


def _walk(graph: Graph, start: str, done: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Depth first, without recursion: a file may hold a chain of thousands. (name, False): reached; (name, True): left,
    with all that follows it. The caller puts those into `done`."""
    stack: list[tuple[str, bool]] = [(start, False)]
    entered: set[str] = set()
    while stack:
        name, ends = stack.pop()
        if not ends and name in done:
            continue
        yield name, ends
        if not ends and name not in entered:
            entered.add(name)
            stack.append((name, True))
            stack.extend((follower, False) for follower in sorted(graph.get(name, ()), reverse=True))


def lengths(graph: Graph) -> dict[str, int]:
    """Of a graph without cycles: how many jobs the longest chain has that begins with each."""
    found: dict[str, int] = {}
    for start in graph:
        for name, ends in _walk(graph, start, found.keys()):
            if ends:
                found[name] = 1 + max((found.get(key, 0) for key in graph.get(name, ())), default=0)
    return found
