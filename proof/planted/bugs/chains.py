"""What the end of a run starts: the jobs that are named for it, each once, and never in circles."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import Bug, Code, code

__all__ = ["BUGS"]

_TESTS = ("tests/store/test_chains.py",)
_CHAINED = Focus(chains=True)
_NOTE = "onthedot.store.runs.finish_batch:_chain_note"

BUGS = (
    code(
        "chain: note lost where all went well",
        "what ends well goes the fast way, which writes no note",
        "onthedot.store.runs.finish_fast:went_well",
        "and not spec.on_success\n        and not spec.on_finish",
        "and True",
        focus=_CHAINED,
        shows=("chain",),
    ),
    code(
        "chain: the wrong edge",
        "what follows failure follows success",
        "onthedot.model.chains:followers",
        "spec.on_success if done else spec.on_failure",
        "spec.on_failure if done else spec.on_success",
        focus=_CHAINED,
        shows=("chain",),
    ),
    code(
        "chain: by a cancelled run",
        "a run that was cancelled starts those that follow failure",
        _NOTE,
        "if job is None or not (done or isinstance(item.decision, Dead)):",
        "if job is None:",
        focus=Focus(chains=True, mood="slow", verbs=("cancel",)),
        shows=("chain",),
    ),
    Bug(
        name="chain: started twice",
        what="the note stays, and the run gets a number of its own each time",
        edits=(
            Code(
                "onthedot.store.jobs.carry_out:_NoteBatch.attempt",
                'await tx.execute("delete_notes", self.taken)',
                'await tx.execute("delete_notes", self.taken if self._after else [])',
            ),
            Code(
                "onthedot.store.jobs.start_followers:_Batch._run",
                'n=chain_number(note["run_id"])',
                'n=chain_number(note["run_id"] + str(now))',
            ),
        ),
        tests=_TESTS,
        unseen="the notes would be carried out for ever",
    ),
    code(
        "chain: a cycle not seen",
        "only a job that names itself is refused",
        "onthedot.plan.chains:_cycle_from",
        "elif name in on_path:",
        "elif name in on_path and path[-1] == name:",
        tests=("tests/unit/plan/test_chains.py",),
        unseen="no user of the simulation asks for a cycle",
    ),
    code(
        "chain: two close a cycle at once",
        "whoever adds names does not take turns with others",
        "onthedot.store.jobs.verbs:_refuse_chains",
        "if not locked:",
        "if False:",
        tests=("tests/store/test_interleavings.py::test_half_a_cycle_each",),
        unseen="no user of the simulation asks for a cycle",
    ),
    code(
        "chain: a job that is named goes",
        "a job can be deleted that others name",
        "onthedot.store.jobs.chains:refuse_if_named",
        "if naming:",
        "if False:",
        tests=_TESTS,
        unseen="no user of the simulation deletes a job that follows others",
    ),
)
