"""A message as every broker's client takes it. It has an id: a repeat carries the same."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

__all__ = ["Message", "kombu_envelope"]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """`task`: the headers of a Celery task, for brokers that Celery uses."""

    id: str
    topic: str
    key: str | None
    headers: dict[str, str]
    content_type: str
    body: bytes
    task: dict[str, Any] | None = None


def kombu_envelope(message: Message) -> bytes:
    """How Celery's library kombu writes a message for brokers that know no headers: Redis and SQS."""
    assert message.task is not None
    return msgspec.json.encode(
        {
            "body": base64.b64encode(message.body).decode(),
            "content-encoding": "utf-8",
            "content-type": message.content_type,
            "headers": message.headers | message.task,
            "properties": {
                "correlation_id": message.id,
                "reply_to": "",
                "delivery_mode": 2,
                "delivery_info": {"exchange": "", "routing_key": message.topic},
                "priority": 0,
                "body_encoding": "base64",
                "delivery_tag": message.id,
            },
        }
    )
