"""Kinds of target: what each says about itself, and what is told of a kind that is not known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.errors import NotAvailable
from onthedot.model.decoding import convert, dec_hook, encode_json
from onthedot.model.job import JobSpec, JobView
from onthedot.model.level import level_of
from onthedot.model.secret_text import MASK
from onthedot.model.secrets import kept, mask_problems, masked
from onthedot.model.targets import (
    CommandTarget,
    FunctionTarget,
    OpaqueTarget,
    Target,
    TargetSpec,
    TargetSummary,
    WebhookTarget,
)
from onthedot.model.targets.registry import not_built, specs, target_types
from onthedot.settings import Settings

WEBHOOK = WebhookTarget(url="http://a.example/")
FUNCTION = FunctionTarget(function="reports.daily:send")
COMMAND = CommandTarget(command="backup")
OPAQUE = OpaqueTarget({"type": "teleport", "to": "Mars", "via": {"a": 1}})


class FaxTarget(TargetSpec, frozen=True, kw_only=True, tag="fax"):
    """Like one of a plug-in."""

    broker: str
    password: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    env: dict[str, str] = msgspec.field(default_factory=dict)

    def secret_fields(self) -> tuple[str, ...]:
        return "password", "env"


@pytest.mark.parametrize(
    ("target", "kind", "capability", "words"),
    [
        (WEBHOOK, "webhook", "webhook", TargetSummary("POST", WEBHOOK.url, WEBHOOK.url)),
        (
            FUNCTION,
            "function",
            "function:reports.daily",
            TargetSummary("function", FUNCTION.function, FUNCTION.function),
        ),
        (COMMAND, "command", "command:backup", TargetSummary("command", "backup", "$ backup")),
    ],
)
def test_what_it_is_and_needs(target: TargetSpec, kind: str, capability: str, words: TargetSummary) -> None:
    assert (target.type, target.capability(), target.summary()) == (kind, capability, words)
    assert specs()[kind] is type(target)
    assert list(target.problems()) == []


def test_another_method_is_said() -> None:
    summary = WebhookTarget(url="http://a.example/", method="GET").summary()
    assert (summary.label, summary.line) == ("GET", "GET http://a.example/")


def test_only_webhooks_have_a_time_out_by_default_which_the_setting_decides() -> None:
    settings = Settings(timeout_seconds=7.5)
    assert [target.timeout_by(settings) for target in (WEBHOOK, FUNCTION, COMMAND, OPAQUE)] == [7.5, None, None, None]
    assert [target.writes_log for target in (WEBHOOK, FUNCTION, COMMAND)] == [False, True, True]


def test_params_raise_the_level_of_a_webhook_without_a_body_only() -> None:
    def level(target: Target, params: dict[str, Any]) -> int:
        return level_of(
            convert({"schedule": {"in": "1s"}, "target": msgspec.to_builtins(target), "params": params}, JobSpec)
        )

    assert level(WEBHOOK, {}) == 1
    assert level(WEBHOOK, {"a": 1}) == 2
    assert level(WebhookTarget(url=WEBHOOK.url, body=0), {"a": 1}) == 1
    assert level(FUNCTION, {"a": 1}) == 1


def test_every_type_of_the_contract_is_named_and_what_is_missing_is_not_built() -> None:
    assert target_types()[:5] == ("webhook", "function", "command", "queue", "script")
    assert set(not_built()) == set(target_types()) - set(specs())


def test_secrets_of_any_kind_are_masked_and_kept() -> None:
    target = FaxTarget(
        broker="amqp://me:hunter2@mq.example/?token=t&x=1",
        password="hunter2",
        headers={"Authorization": "a", "x": "b"},
        env={"HOME": "/root"},
    )
    shown = masked(target)
    assert shown == FaxTarget(
        broker=f"amqp://me:{MASK}@mq.example/?token={MASK}&x=1",
        password=MASK,
        headers={"Authorization": MASK, "x": "b"},
        env={"HOME": MASK},
    )
    assert [problem.path for problem in mask_problems(shown)] == [
        "target.headers.Authorization",
        "target.env.HOME",
        "target.password",
        "target.broker",
    ]
    unmasked = msgspec.structs.replace(target, broker="amqp://mq.example/?token=t&x=1")
    assert kept(masked(unmasked), unmasked) == unmasked


def test_a_kind_that_is_not_known_shows_its_type_alone() -> None:
    assert masked(OPAQUE) == OpaqueTarget({"type": "teleport", "to": MASK, "via": MASK})
    assert mask_problems(OPAQUE) == []
    assert list(OPAQUE.problems()) == []
    assert encode_json(OPAQUE) == b'{"type":"teleport","to":"Mars","via":{"a":1}}'


@pytest.mark.parametrize("ask", [OpaqueTarget.capability, lambda target: target.level_with({})])
def test_what_it_needs_only_its_row_can_say(ask: Any) -> None:
    with pytest.raises(NotAvailable, match="'teleport' is not installed here"):
        ask(OPAQUE)
    known = OpaqueTarget(OPAQUE, "teleport:mars", 3)
    assert (known.capability(), known.level_with({})) == ("teleport:mars", 3)


VIEW: dict[str, Any] = {
    **dict.fromkeys(("key", "name", "reason", "next_run", "last_run")),
    "id": 1,
    "schedule": {"in": "1s"},
    "policy": {},
    "params": {},
    "tags": [],
    "paused": False,
    "version": 1,
    "state": "active",
    "created_at": "",
    "updated_at": "",
    "stats": {},
}


@pytest.mark.parametrize("target", [WEBHOOK, FUNCTION, COMMAND, OPAQUE])
def test_a_job_that_is_read_may_have_any_target(target: Target) -> None:
    raw = encode_json({**VIEW, "target": target})
    read = msgspec.json.decode(raw, type=JobView, dec_hook=dec_hook)
    assert read.target == target
    assert type(read.target) is type(target)


@pytest.mark.parametrize(
    "target", [3, None, {}, {"type": 3}, {"type": "webhook", "url": 3}, {"type": "webhook", "x": 1}]
)
def test_but_not_anything(target: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(encode_json({**VIEW, "target": target}), type=JobView, dec_hook=dec_hook)
