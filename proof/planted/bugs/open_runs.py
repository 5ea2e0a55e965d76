"""Open runs: work that goes on without a node is neither lost, nor repeated, nor forgotten."""

from __future__ import annotations

from proof.planted.plant import Bug, code, sql

__all__ = ["BUGS"]


_TESTS = ("tests/store/test_open_runs.py",)
_UNSEEN = "of what the store does with open runs the tests ask more exactly than the simulation, which plays few"


def _open(name: str, what: str, statement: str, part: str, instead: str, *, times: int = 1) -> Bug:
    return sql(
        name,
        what,
        statement,
        part,
        instead,
        times=times,
        tests=_TESTS,
        unseen=_UNSEEN,
    )


BUGS = (
    _open(
        "open: counted as a loss",
        "three dead nodes make a dead letter of work that goes on",
        "open_runs",
        "open = 'adopt', claimed_at",
        "open = 'adopt', losses = losses + 1, claimed_at",
    ),
    _open(
        "open: lane freed",
        "the next run of the lane starts beside work that goes on",
        "open_runs",
        "open = 'adopt', claimed_at",
        "open = 'adopt', lane = NULL, claimed_at",
    ),
    _open(
        "open: order dropped",
        "a cancel that the node had not read is forgotten",
        "open_runs",
        "orders = nullif(runs.orders, 'recall')",
        "orders = NULL",
    ),
    _open(
        "open: recall kept",
        "what goes on is given back as if it had not begun",
        "open_runs",
        "orders = nullif(runs.orders, 'recall')",
        "orders = runs.orders",
    ),
    _open(
        "open: back to pending",
        "work that goes on is started a second time",
        "orphans",
        "r.work,",
        "NULL AS work,",
    ),
    _open(
        "open: by anybody",
        "a node that does not own a run lets go of it",
        "open_runs",
        "AND (+runs.node = x.node OR runs.open = 'adopt') ",
        "",
    ),
    _open(
        "open: without work",
        "a run that started nothing waits for ever",
        "open_runs",
        "AND runs.work IS NOT NULL",
        "",
    ),
    _open(
        "open: taken for an orphan",
        "open runs are reclaimed again and again",
        "orphans",
        "AND r.node IS NOT NULL",
        "",
    ),
    _open("adopt: twice", "two nodes have one run", "adopt_runs", "open = NULL, ", ""),
    _open(
        "adopt: same token",
        "the node before can finish what another has adopted",
        "adopt_runs",
        "token = token + 1",
        "token = token",
    ),
    _open(
        "adopt: order dropped", "a cancel is forgotten", "adopt_runs", "open = NULL, ", "open = NULL, orders = NULL, "
    ),
    _open(
        "adopt: from anywhere",
        "a node that can't reach the work says that it is gone",
        "adopt_runs",
        "AND c.requires = o.value ",
        "",
    ),
    _open(
        "adopt: by a lost node",
        "a node that was declared lost adopts",
        "adopt_runs",
        "AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)",
        "",
    ),
    _open(
        "overdue: ignored", "a run that nobody reaches never ends", "overdue_runs", "r.open IS NOT NULL AND", "0 AND"
    ),
    _open(
        "overdue: at once",
        "nobody has the time to stop it",
        "overdue_runs",
        "n.now - 30000",
        "n.now",
    ),
    code(
        "overdue: a cancelled one is tried again",
        "an order is forgotten with the node",
        "onthedot.store.runs.open:_decide",
        "if is_stop(orders):",
        "if not run:",
        tests=_TESTS,
        unseen=_UNSEEN,
    ),
    _open(
        "edit: open run refitted",
        "nobody looks for the work where it is",
        "refit_runs",
        "requires = CASE WHEN work IS NULL THEN ?2 ELSE requires END",
        "requires = ?2",
    ),
    _open(
        "finish_retry: work kept",
        "the next try takes the last one's work for its own",
        "finish_retry",
        "work = NULL, ",
        "",
    ),
    _open(
        "begin_work: against orders",
        "what was cancelled is started",
        "begin_work",
        "AND runs.orders IS NULL",
        "",
    ),
)
