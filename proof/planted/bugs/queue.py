"""Bugs of queue targets: done without a confirmation, another id, a broker that takes the others with it."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_NATS = "onthedot.brokers.nats:NatsPublisher"
_RABBIT = "onthedot.brokers.rabbitmq"
_LINK = "onthedot.brokers.link:BrokerLink"
_UNSEEN = "the simulation has no broker"


def _bug(name: str, what: str, where: str, part: str, instead: str, *tests: str) -> Bug:
    named = tuple(f"tests/targets/test_queue_brokers.py::{test}" for test in tests)
    return code(f"queue: {name}", what, where, part, instead, tests=named, unseen=_UNSEEN)


BUGS = (
    code(
        "queue: closing is interrupted",
        "a client that is closed by who is cancelled leaves its connection open",
        "onthedot.brokers.redis:close_client",
        "await asyncio.wait({closing}, timeout=CLOSED_WITHIN)",
        "closing.cancel()",
        tests=("tests/targets/test_queue_link.py",),
        unseen=_UNSEEN,
    ),
    _bug(
        "a new id for each attempt",
        "a repeat after a lost confirmation can't be told from another message",
        f"{_NATS}.publish",
        '"Nats-Msg-Id": message.id}',
        '"Nats-Msg-Id": message.id + str(next(self._numbers))}',
        "test_a_repeat_has_the_same_id_and_jetstream_drops_it",
    ),
    _bug(
        "done when it was sent",
        "a message that no stream takes counts as published",
        f"{_NATS}.publish",
        "return await confirmed",
        'return {"stream": message.topic, "seq": 1}',
        "test_a_subject_without_a_stream_is_a_failed_try",
    ),
    _bug(
        "not mandatory",
        "RabbitMQ confirms what no queue takes, and drops it",
        f"{_RABBIT}:RabbitPublisher.publish",
        "mandatory=True,",
        "mandatory=False,",
        "test_a_queue_that_does_not_exist_is_a_failed_try",
    ),
    _bug(
        "what waits is forgotten",
        "messages whose connection broke wait for their time-out, and keep their slots",
        f"{_NATS}.ended",
        "if not confirmed.done():",
        "if False:",
        "test_what_waits_for_a_confirmation_fails_when_the_broker_dies[nats]",
    ),
    _bug(
        "one missing queue stops a broker",
        "messages that no queue takes open the breaker, and all messages to that broker wait",
        "onthedot.targets.queue.kind:Queues.send",
        'detail = {"answered": True} if isinstance(failed, NobodyTakesIt) else {}',
        "detail = {}",
        "test_a_broker_without_a_queue_for_one_message_is_not_away[nats]",
    ),
    _bug(
        "never connected again",
        "a connection that ended by itself is kept, and every message fails from then on",
        f"{_LINK}._lost",
        "self._publisher = self._silent_since = None",
        "self._silent_since = None",
        "test_a_broker_that_is_away_is_told_at_once_and_found_again[nats]",
    ),
    _bug(
        "a frozen broker keeps its connection",
        "messages go out on a connection that answers nothing",
        f"{_LINK}._confirmed",
        'self._lost(publisher, "it no longer confirms messages")',
        "pass",
        "test_a_frozen_broker_keeps_what_it_has_and_fails_the_rest[nats]",
    ),
)
