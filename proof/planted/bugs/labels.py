"""Labels and mailboxes: runs that go to the wrong node, wait in silence or for ever, and queues without a bound."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_STORE = ("tests/store/test_labels.py",)
_ENGINE = ("tests/engine/test_labels.py",)
_UNSEEN = "no job of the simulation requires a label"


def _tested(name: str, what: str, where: str, part: str, instead: str, tests: tuple[str, ...]) -> Bug:
    return code(f"labels: {name}", what, where, part, instead, tests=tests, unseen=_UNSEEN)


BUGS = (
    _tested(
        "ignored",
        "a run goes to any node that can execute its target",
        "onthedot.model.job:JobSpec.requirement",
        "with_labels(capability, self.requires) if self.requires else capability",
        "capability",
        (*_STORE, *_ENGINE),
    ),
    _tested(
        "one of them is enough",
        "a node takes what requires more labels than it has",
        "onthedot.engine.claiming.node_offers:NodeOffers.seen",
        "not self.labels.issuperset(needed.labels)",
        "self.labels.isdisjoint(needed.labels)",
        _ENGINE,
    ),
    _tested(
        "an edit is not seen",
        "pending runs still require what their job did",
        "onthedot.store.jobs.apply_plan:_refit_runs",
        "spec.schedule, needed)",
        "spec.schedule, old.requirement())",
        _STORE,
    ),
    _tested(
        "waiting is not told",
        "a run that nobody can take looks like any other",
        "onthedot.model.labels:missing_labels",
        "return tuple(lacking) or None",
        "return None",
        _STORE,
    ),
    _tested(
        "nobody is warned",
        "runs that no live node can take are not logged",
        "onthedot.store.cluster.maintenance:Maintenance._tell_unroutable",
        "backlog.unoffered.keys() - self._unroutable",
        "self._unroutable & backlog.unoffered.keys()",
        _STORE,
    ),
    _tested(
        "stuck after a node joins",
        "a node that has the labels does not look for what waits for it",
        "onthedot.engine.claiming.label_watch:LabelWatch.look",
        "self._look_times.ask()",
        "pass",
        _ENGINE,
    ),
    _tested(
        "lost on the way to a destination",
        "a run that was turned away comes back to a node without its labels",
        "onthedot.engine.running.destinations:Destinations._find",
        "run.spec.requirement()",
        "run.spec.target.capability()",
        _ENGINE,
    ),
    code(
        "labels: claims while nothing is recorded",
        "a store that gives runs and records none fills the memory with runs that go back",
        "onthedot.engine.claiming.claimer:Claimer.ask_next",
        "not self._results.overflowing and ",
        "",
        tests=("tests/engine/test_node_firing.py",),
        unseen="the simulation does not measure memory",
    ),
    code(
        "labels: a mailbox without a bound",
        "a slow database lets the memory of a node grow",
        "onthedot.engine.mailbox:Mailbox.offer",
        "if len(self._items) >= self.size or self._senders:",
        "if self._senders:",
        tests=("tests/engine/test_mailbox.py",),
        unseen="the simulation does not measure memory",
    ),
)
