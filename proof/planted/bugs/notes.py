"""What the end of a run causes elsewhere: done, once, to the job that was meant."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import Bug, Code, code

__all__ = ["BUGS"]

_BATCH = "onthedot.store.runs.finish_batch:FinishBatch._follow_up"
_PARK = "onthedot.store.jobs.carry_out:_park"
_BODY = "onthedot.store.jobs.carry_out:_NoteBatch.attempt"
_TESTS = ("tests/store/test_notes.py",)
_ATOMIC = "a method of the store is carried out whole there, or not at all"
_GONE = Focus(policy={"overlap": "allow"}, mood="gone")

_DELETE = 'await tx.execute("delete_notes", self.taken)'

BUGS = (
    code("note: not written", "a job whose receiver is gone goes on", _BATCH, "if notes:", "if False:", focus=_GONE),
    Bug(
        name="note: written outside the transaction",
        what="who dies right after the end of a run was recorded takes the note along",
        edits=(
            Code(_BATCH, "if notes:", "if False:"),
            Code(
                "onthedot.store.runs.finish:Finishes.finish",
                "    batch.announce()\n",
                "    batch.announce()\n"
                "    if notes := batch._notes(alerting):\n"
                '        await self.driver.transact(lambda tx: tx.execute("add_notes", Rows(notes)))\n',
            ),
        ),
        tests=_TESTS,
        unseen=_ATOMIC,
    ),
    Bug(
        name="note: carried out twice",
        what="the note stays, and the job does not have to be the same",
        edits=(Code(_PARK, "if said.version != job.record.version:", "if False:"), Code(_BODY, _DELETE, "pass")),
        tests=_TESTS,
        unseen=_ATOMIC,
    ),
    code(
        "note: of a job that was changed",
        "a job is parked for what its old receiver said",
        _PARK,
        "if said.version != job.record.version:",
        "if False:",
        tests=_TESTS,
        unseen="a job would have to be changed in the moment between the end of its run and the note",
    ),
    code(
        "note: left to who wrote it",
        "nobody but the node that recorded the end looks for notes",
        "onthedot.engine.membership.heartbeat:Heartbeat.beat",
        "if answer.noted:",
        "if False:",
        tests=("tests/engine/test_note_runner.py",),
        unseen="a node would have to die in the two milliseconds between the two commits",
    ),
    code(
        "note: left to the others",
        "the node that recorded the end waits for its next beat",
        "onthedot.engine.recording.recorder:Recorder._recorded",
        "if answer.noted:",
        "if False:",
        tests=("tests/engine/test_note_runner.py",),
        unseen="within a second is what is promised, and the beat is sooner",
    ),
)
