from __future__ import annotations

import datetime as dt
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.errors import FieldProblem, Invalid, NotAvailable, Unreadable
from onthedot.model import decoding
from onthedot.model.decoding import convert, decode_json, encode_json, to_builtins
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.portions import WINDOW
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget, WebhookTarget, registry
from onthedot.model.timer import TimerSpec
from tests.unit.model.jobs import SPECS, VALUES

GOOD: dict[str, Any] = {"schedule": {"every": "90s"}, "target": {"type": "webhook", "url": "http://x/"}}


def problems(loose: Any, kind: type = JobSpec) -> dict[str, FieldProblem]:
    with pytest.raises(Invalid) as caught:
        convert(loose, kind)
    assert len(caught.value.problems) > 0
    return {problem.path: problem for problem in caught.value.problems}


@settings(deadline=None)
@given(SPECS)
def test_a_job_that_is_written_reads_back_equal(spec: JobSpec) -> None:
    assert decode_json(encode_json(spec), JobSpec) == spec
    assert convert(to_builtins(spec), JobSpec) == spec
    assert encode_json(decode_json(encode_json(spec), JobSpec)) == encode_json(spec)


def test_defaults_are_those_of_the_contract() -> None:
    spec = convert(GOOD, JobSpec)
    policy = spec.policy
    assert (policy.retry.attempts, policy.retry.backoff, policy.retry.factor, policy.retry.max) == (3, 1000, 2, 300_000)
    assert (policy.timeout, policy.overlap, policy.catch_up, policy.delivery) == (
        None,
        "allow",
        "latest",
        "at_least_once",
    )
    assert (policy.jitter, policy.expires_in, policy.retry.max_age, policy.catch_up_limit) == (0, None, None, 100)
    assert spec.schedule == Schedule(every=Duration(90_000), tz="UTC")
    assert isinstance(spec.target, WebhookTarget)
    assert spec.target.method == "POST"
    assert (spec.key, spec.name, spec.params, spec.tags, spec.paused) == (None, None, {}, [], False)


def test_every_target_type() -> None:
    for target, kind in (
        ({"type": "webhook", "url": "x"}, WebhookTarget),
        ({"type": "function", "function": "m:f"}, FunctionTarget),
        ({"type": "command", "command": "c"}, CommandTarget),
    ):
        assert isinstance(convert({**GOOD, "target": target}, JobSpec).target, kind)


def test_all_mistakes_are_named_at_once() -> None:
    found = problems(
        {
            "key": "a b",
            "name": 3,
            "schedule": {"cron": 5, "every": "-5s", "in": "soon", "count": 0, "when": 1},
            "target": {"type": "webhook", "url": 1, "headers": {"a": 1, "b": "fine", "c": None}, "method": "FETCH"},
            "policy": {"retry": {"attempts": 0, "factor": 1000, "backoff": None}, "overlap": "x", "timeout": []},
            "tags": ["", 1, "fine"],
            "params": [],
            "paused": "yes",
            "colour": "red",
        }
    )
    assert {path: problem.message for path, problem in found.items()} == {
        "key": "does not have the required format",
        "name": "expected text or null, not a whole number",
        "schedule.cron": "expected text or null, not a whole number",
        "schedule.every": "a duration can't be negative",
        "schedule.in": "not a duration",
        "schedule.count": "is too small",
        "schedule.when": "unknown field",
        "target.url": "expected text, not a whole number",
        "target.headers.a": "expected text, not a whole number",
        "target.headers.c": "expected text, not null",
        "target.method": "is not an accepted value",
        "policy.retry.attempts": "is too small",
        "policy.retry.factor": "is too large",
        "policy.retry.backoff": "not a duration",
        "policy.overlap": "is not an accepted value",
        "policy.timeout": "not a duration",
        "tags[0]": "is empty",
        "tags[1]": "expected text, not a whole number",
        "params": "expected an object, not a list",
        "paused": "expected true or false, not text",
        "colour": "unknown field",
    }


@pytest.mark.parametrize(
    ("change", "path", "accepted"),
    [
        ({"policy": {"retry": {"attempts": 0}}}, "policy.retry.attempts", "a whole number from 1 to 1000"),
        ({"policy": {"retry": {"factor": 0.5}}}, "policy.retry.factor", "a number from 1 to 100"),
        ({"policy": {"overlap": "no"}}, "policy.overlap", "one of allow, skip, queue, replace"),
        ({"policy": {"jitter": "x"}}, "policy.jitter", "seconds as a number, or text such as"),
        ({"name": "x" * 501}, "name", "text of at most 500 characters or null"),
        ({"tags": ["x"] * 51}, "tags", "a list of at most 50 entries"),
        ({"tags": ["x" * 101]}, "tags[0]", "text of 1 to 100 characters"),
        ({"key": "-a"}, "key", "1 to 200 letters, digits, dots"),
        ({"key": "a\n"}, "key", "1 to 200 letters, digits, dots"),
        ({"schedule": "0 3 * * *"}, "schedule", "an object with cron, every, at, in, rrule, tz"),
        ({"schedule": {"when": 1}}, "schedule.when", "cron, every, at, in, rrule, tz, start, end, count, exclude"),
        ({"target": 3}, "target", "an object with type webhook or an object with type function"),
        ({"target": {"type": "webhook", "url": "x" * 8193}}, "target.url", "text of at most 8192 characters"),
        ({"target": {"url": "x"}}, "target.type", "webhook, function, command"),
        ({"target": {"type": "fax"}}, "target.type", "webhook, function, command"),
        ({"target": {"type": ["webhook"]}}, "target.type", "webhook, function, command"),
        ({"target": {"type": "webhook"}}, "target.url", "text of at most 8192 characters"),
    ],
)
def test_what_is_accepted_reads_well(change: dict[str, Any], path: str, accepted: str) -> None:
    problem = problems({**GOOD, **change})[path]
    assert problem.accepted is not None
    assert problem.accepted.startswith(accepted)


def test_what_is_missing_is_named() -> None:
    found = problems({})
    assert found["schedule"].message == found["target"].message == "required field is missing"
    assert problems([])["$"].message == "expected an object, not a list"
    assert problems({"hours": 1}, TimerSpec)["url"].message == "required field is missing"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of the contract that is not built yet; at present there is none."""
    monkeypatch.setattr(registry, "PLANNED", ("fax",))


@pytest.mark.usefixtures("planned")
def test_kinds_that_are_not_built_say_so() -> None:
    with pytest.raises(NotAvailable) as caught:
        convert({**GOOD, "target": {"type": "fax"}}, JobSpec)
    assert caught.value.problems[0].path == "target.type"
    assert caught.value.problems[0].message.startswith("not available")


@pytest.mark.usefixtures("planned")
def test_not_available_beside_another_mistake_is_invalid() -> None:
    with pytest.raises(Invalid) as caught:
        convert({**GOOD, "target": {"type": "fax"}, "tags": 1}, JobSpec)
    assert not isinstance(caught.value, NotAvailable)
    assert {problem.path for problem in caught.value.problems} == {"target.type", "tags"}


def test_numbers_are_not_texts_and_texts_are_not_numbers() -> None:
    found = problems({"hours": "1", "minutes": 1.5, "seconds": True, "url": 7}, TimerSpec)
    assert found["hours"].message == "expected a whole number, not text"
    assert found["minutes"].message == "expected a whole number, not a decimal number"
    assert found["seconds"].message == "expected a whole number, not true or false"
    assert found["url"].message == "expected text, not a whole number"


def test_paths_begin_where_they_are_told_to() -> None:
    with pytest.raises(Invalid) as caught:
        convert({"schedule": {"every": 0.0001}}, JobSpec, path="jobs[3]")
    assert {problem.path for problem in caught.value.problems} == {"jobs[3].schedule.every", "jobs[3].target"}
    with pytest.raises(Invalid) as caught:
        convert({"schedule": "\x00"}, JobSpec, path="jobs[3]")
    assert caught.value.problems[0].path == "jobs[3].schedule"


@pytest.mark.parametrize(
    ("params", "path", "message"),
    [
        ({"a": "x\x00y"}, "params.a", "contains a NUL character"),
        ({"a\x00": 1}, "params.a\\u0000", "contains a NUL character"),
        ({"a": ["fine", "\x00"]}, "params.a[1]", "contains a NUL character"),
        ({"a": "\ud800"}, "params.a", "contains an unpaired surrogate"),
        ({"\udfff": 1}, "params.\\udfff", "contains an unpaired surrogate"),
        ({"a": 2**63}, "params.a", "the number is too large"),
        ({"a": -(2**63) - 1}, "params.a", "the number is too large"),
        ({"a": 10**5000}, "params.a", "the number is too large"),
        ({"a": float("nan")}, "params.a", "not a finite number"),
        ({"a": float("-inf")}, "params.a", "not a finite number"),
        ({"a": dt.date(2026, 1, 1)}, "params.a", "not a JSON value: date"),
        ({"a": b"x"}, "params.a", "not a JSON value: bytes"),
        ({1: "x"}, "params.1", "field names must be text"),
    ],
)
def test_what_no_field_may_hold(params: dict[Any, Any], path: str, message: str) -> None:
    found = problems({**GOOD, "params": params})
    assert found[path].message == message
    json.loads(encode_json(list(found.values())))  # the answer itself can be written


def test_nesting_without_end() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    (problem,) = problems({**GOOD, "params": {"a": deep}}).values()
    assert problem.message == "nested too deeply"
    for count in (100, 900, 5000, 100_000):
        with pytest.raises((Unreadable, Invalid)):
            decode_json(b"[" * count + b"]" * count, JobSpec)
        with pytest.raises((Unreadable, Invalid)):
            decode_json(b'{"params":' * count + b"1" + b"}" * count, JobSpec)


def test_a_million_mistakes_are_not_a_million_lines() -> None:
    found = problems({**GOOD, "params": {"a": ["\x00"] * 100_000}})
    assert len(found) == 100


def test_what_was_given_is_cut_short() -> None:
    found = problems({**GOOD, "name": ["x" * 10_000], "paused": "y" * 10_000})
    assert len(found["name"].given) == len(found["paused"].given) == 201


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"nul", b"\xff\xfe", b'{"a": "\xff"}', b"{'a': 1}", b"[1,]", b'{"a":1}x', b"\xef\xbb\xbf{}", b"1e400",
     b'"\\ud800"', b"NaN", "☃".encode("utf-16")],
)  # fmt: skip
def test_what_is_not_json_is_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        decode_json(raw, JobSpec)


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_answered(raw: bytes) -> None:
    with pytest.raises((Unreadable, Invalid)):
        decode_json(raw, JobSpec)


@settings(deadline=None, max_examples=200)
@given(
    st.dictionaries(
        st.sampled_from(["key", "name", "schedule", "target", "policy", "params", "tags", "paused"]), VALUES
    )
    | VALUES
)
def test_any_value_is_read_or_refused_with_reasons(loose: Any) -> None:
    for kind in (JobSpec, TimerSpec):
        with pytest.raises(Invalid) as caught:
            convert(loose, kind)
        assert all(problem.path and problem.message for problem in caught.value.problems)


@settings(deadline=None, max_examples=200)
@given(
    field=st.sampled_from(["cron", "every", "at", "in", "rrule", "tz", "start", "end", "count", "exclude"]),
    value=VALUES,
    part=st.sampled_from(["schedule", "target", "policy"]),
    other=st.sampled_from(["url", "method", "headers", "secret", "timeout", "retry", "jitter", "overlap"]),
)
def test_any_value_in_any_field(field: str, value: Any, part: str, other: str) -> None:
    loose = {**GOOD, "schedule": {field: value}}
    loose[part] = {**loose[part], other: value} if part in loose else {other: value}
    spec, wrong = None, []
    try:
        spec = convert(loose, JobSpec)
    except Invalid as invalid:
        wrong = [problem.path for problem in invalid.problems]
    assert (spec is None) == bool(wrong)
    assert all(path.startswith((part, "schedule")) for path in wrong)
    assert spec is None or convert(to_builtins(spec), JobSpec) == spec


def test_durations_stay_text_in_json() -> None:
    assert b'"every":"1m30s"' in encode_json(convert(GOOD, JobSpec))
    assert encode_json({"a": Duration(5)}) == b'{"a":"5ms"}'


def _long_way(raw: bytes) -> Any:
    return convert(json.loads(raw), JobSpec)


@settings(deadline=None, max_examples=300)
@given(
    st.fixed_dictionaries(
        {"schedule": st.just({"in": "1h"}), "target": st.just(GOOD["target"])},
        optional={"params": st.dictionaries(st.text(), VALUES), "name": VALUES, "policy": VALUES, "tags": VALUES},
    ),
    st.booleans(),
)
def test_the_short_way_says_what_the_long_way_says(loose: dict[str, Any], ascii_only: bool) -> None:
    """Bodies without escapes and long numbers are decoded at once; nothing may pass or fail for that reason."""
    try:
        raw = json.dumps(loose, ensure_ascii=ascii_only, allow_nan=False).encode()
    except (UnicodeEncodeError, ValueError):
        return  # no JSON, or no UTF-8: others test that
    found: list[Any] = []
    for read in (_long_way, lambda raw: decode_json(raw, JobSpec)):
        try:
            found.append(encode_json(read(raw)))
        except (Invalid, Unreadable) as refused:
            found.append(type(refused))
    assert found[0] == found[1] or found[1] is Unreadable


@pytest.mark.parametrize(
    "value",
    ['"a\\u0000b"', '"\\ud800"', "9223372036854775808", "1" * 30, "[" * 60 + "]" * 60, '{"a":' * 60 + "1" + "}" * 60],
)
def test_hazards_are_seen_whatever_the_way(value: str) -> None:
    raw = b'{"schedule":{"in":"1h"},"target":{"type":"webhook","url":"http://x/"},"params":{"a":%s}}' % value.encode()
    with pytest.raises((Invalid, Unreadable)):
        decode_json(raw, JobSpec)


def test_the_later_of_two_equal_names_counts_whatever_the_way() -> None:
    raw = b'{"name":"a","name":"b","schedule":{"in":"1h"},"target":{"type":"webhook","url":"http://x/"}}'
    assert decode_json(raw, JobSpec).name == _long_way(raw).name == "b"


@pytest.mark.parametrize("before", [WINDOW - 30, WINDOW - 19, WINDOW - 10, WINDOW - 1, WINDOW])
def test_a_number_that_is_too_long_is_found_across_windows(before):
    assert decoding._has_long_number(b"x" * before + b"1234567890123456789" + b"x" * WINDOW)
    assert not decoding._has_long_number(b"x" * before + b"123456789012345678" + b"x" * WINDOW)


def test_of_a_long_value_only_the_beginning_is_written_out():
    long = [1e308] * 100_000
    began = time.thread_time()
    with pytest.raises(Invalid) as caught:
        decode_json(b'{"nothing": ' + json.dumps(long).encode() + b"}", JobSpec)
    assert time.thread_time() - began < 1, "all of it took five seconds"
    given = next(problem.given for problem in caught.value.problems if problem.path == "nothing")
    assert given == json.dumps(long[:100], separators=(",", ":")).replace("1e+308", "1e308")[:200] + "…"
