"""Bugs of intakes: acknowledged before it is stored, carried out twice, overtaken, refused without a trace."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_SESSION = "onthedot.intake.session:IntakeSession"
_LETTERS = "onthedot.intake.dead_letters:DeadLetterSender"
_APPLIER = "onthedot.intake.apply:CommandApplier"
_BROKERS = "tests/intake/test_brokers.py"
_UNSEEN = "the simulation has no broker"


def _bug(name: str, what: str, where: str, part: str, instead: str, *tests: str) -> Bug:
    return code(f"intake: {name}", what, where, part, instead, tests=tests, unseen=_UNSEEN)


BUGS = (
    _bug(
        "acknowledged before it is stored",
        "a node that dies, or is stopped, between the two loses the message",
        f"{_SESSION}._work",
        "read = await self._decoded(taken)",
        "read = await self._decoded(taken)\n    await self._reader.settle(taken)",
        f"{_BROKERS}::test_while_the_store_is_away_nothing_is_acknowledged_and_nothing_lost",
    ),
    _bug(
        "a dead letter is lost",
        "a refused message is acknowledged though its letter was not confirmed",
        f"{_LETTERS}._send",
        "is_held = True",
        "return",
        f"{_BROKERS}::test_a_missing_dead_letter_topic_keeps_only_the_bad_ones",
    ),
    _bug(
        "a second delivery doubles",
        "each delivery is taken for another message",
        "onthedot.intake.commands:_repeat",
        'Idempotency(f"intake/{intake}/{known_as}"',
        'Idempotency(f"intake/{intake}/{known_as}/{id(raw)}"',
        f"{_BROKERS}::test_a_second_delivery_changes_nothing[nats]",
    ),
    _bug(
        "a second put overwrites",
        "put is not remembered: a repeat undoes what came after it",
        f"{_APPLIER}._verb",
        "await service.put_job_by_key(tenant, does.key, does.job, idempotency=repeat)",
        "await service.put_job_by_key(tenant, does.key, does.job)",
        f"{_BROKERS}::test_a_second_delivery_changes_nothing[nats]",
    ),
    _bug(
        "messages overtake each other",
        "changes of one job are carried out at the same time, in any order",
        "onthedot.intake.segments:segments",
        "and not touches & names",
        "and touches is not names",
        "tests/intake/test_commands.py::test_what_names_the_same_job_never_goes_together",
    ),
    _bug(
        "a bad message keeps those behind it",
        "what can't be read ends the connection, and comes again first",
        "onthedot.intake.commands:read_all",
        "yield error",
        "raise",
        f"{_BROKERS}::test_messages_do_what_requests_do[redis]",
    ),
    _bug(
        "an offset passes what is not settled",
        "Kafka forgets messages that are still being worked on",
        "onthedot.brokers.readers.kafka:PartitionOffsets.settled",
        "min(self._open[each], default=self._next[each])",
        "self._next[each]",
        "tests/intake/test_simulated.py::test_only_what_all_before_it_is_settled_too_may_be_committed",
    ),
)
