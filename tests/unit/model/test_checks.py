from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.checks import check_spec
from onthedot.model.decoding import convert, to_builtins
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.level import level_of
from onthedot.model.policy import Policy, Retry
from onthedot.model.schedule import Schedule
from onthedot.model.secret_text import MASK
from onthedot.model.targets import CommandTarget, FunctionTarget, WebhookTarget
from onthedot.model.targets.webhook import url_problem
from tests.unit.model.jobs import SPECS, spec

ZERO = Duration(0)


def problems(job: JobSpec) -> dict[str, FieldProblem]:
    try:
        check_spec(job)
    except Invalid as invalid:
        return {problem.path: problem for problem in invalid.problems}
    return {}


def webhook(**fields: Any) -> JobSpec:
    return spec(target=WebhookTarget(**{"url": "https://example.com/hook", **fields}))


def test_a_good_job_passes() -> None:
    assert problems(spec()) == {}
    assert problems(spec(policy=Policy(delivery="at_most_once", retry=Retry(attempts=5)))) == {}
    assert problems(spec(policy=Policy(jitter=ZERO))) == {}
    assert problems(webhook(secret=MASK)) == {}


def test_zero_durations() -> None:
    policy = Policy(timeout=ZERO, retry=Retry(backoff=ZERO, max=ZERO, max_age=ZERO), expires_in=ZERO)
    found = problems(spec(policy=policy))
    assert set(found) == {
        "policy.timeout",
        "policy.retry.backoff",
        "policy.retry.max",
        "policy.retry.max_age",
        "policy.expires_in",
    }
    assert {problem.message for problem in found.values()} == {"must be more than zero"}
    assert {problem.given for problem in found.values()} == {"0s"}


def test_everything_wrong_is_told_at_once() -> None:
    job = spec(
        target=WebhookTarget(url="ftp://x", headers={"Host": "x", "a b": "c\r\nd"}, secret="short"),
        policy=Policy(timeout=ZERO),
        tags=["a", "b", "a"],
    )
    assert set(problems(job)) == {
        "target.url",
        "target.headers.Host",
        "target.headers.a b",
        "target.secret",
        "policy.timeout",
        "tags[2]",
    }


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "https://example.com/",
        "HTTPS://EXAMPLE.COM/x?y=z#f",
        "http://127.0.0.1:5003/echo",
        "http://localhost:1/",
        "http://[::1]:8000/x",
        "http://[::ffff:10.0.0.1]/",
        "http://2130706433/",  # the egress rule's business
        "http://0x7f.1/",
        "http://my_service.internal./path",
        "http://xn--bcher-kva.example/",
        "http://bücher.example/ä?ö=ü",
        "http://example.com:65535/%20",
        "http://example.com:/",
        "http://" + "a" * 63 + ".example/",
    ],
)
def test_urls(url: str) -> None:
    assert url_problem(url) is None
    assert problems(webhook(url=url)) == {}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "/hook",
        "//example.com/x",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http:",
        "http://",
        "http:///path",
        "http:example.com",
        "http://:80/",
        "http://?x",
        "http://#x",
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://@example.com/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:-1/",
        "http://example.com:x/",
        "http://example.com:٣/",
        "http://exa mple.com/",
        "http://example.com/a b",
        "http://example.com/\n",
        "\thttp://example.com/",
        " http://example.com/",
        "http://example.com\\@evil.example/",
        "http://example.com/\x7f",
        "http://example.com/\x00",
        "http://example.com\u2028/",
        "http://exa%6dple.com/",
        "http://a..b/",
        "http://.a/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[fe80::1%25eth0]/",
        "http://[v1.x]/",
        "http://a,b/",
        "http://a;b/",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 127 + "example/",
        "http://example.com/" + "x" * 8192,
        "http://example.com\uff0fevil.example/",  # NFKC makes a slash of it
    ],
)
def test_no_urls(url: str) -> None:
    assert url_problem(url) is not None
    (problem,) = problems(webhook(url=url)).values()
    assert problem.path == "target.url"
    assert problem.accepted == "an absolute http:// or https:// URL with a host, without user name or password"
    assert len(str(problem.given)) <= 200


@settings(deadline=None)
@given(st.text() | st.text("htps:/@[]%.0123456789abc\\#?").map(lambda rest: "http://" + rest))
def test_any_url_is_answered(url: str) -> None:
    message = url_problem(url)
    assert message is None or message


OURS = [
    *("Host", "host", "CONTENT-LENGTH", "Transfer-Encoding", "connection", "upgrade", "te", "trailer", "traceparent"),
    *(
        "webhook-id",
        "Webhook-Signature",
        "webhook-anything",
        "x-onthedot-attempt",
        "X-OnTheDot-Job",
        "Proxy-Authorization",
    ),
]


@pytest.mark.parametrize("name", OURS)
def test_headers_that_are_ours(name: str) -> None:
    found = problems(webhook(headers={name: "x"}))
    assert found[f"target.headers.{name}"].message == "reserved: On the Dot sets this header"


@pytest.mark.parametrize("name", ["", " ", "a b", "a:", "a\r\nb", "ä", "a\x00", "(a)", "a" * 201])
def test_no_header_names(name: str) -> None:
    (problem,) = problems(webhook(headers={name: "x"})).values()
    assert problem.message == "not a valid header name"


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", "a\rb", "\x00", "a\x1b[0m", "\x7f", "x" * 8193])
def test_no_header_values(value: str) -> None:
    (problem,) = problems(webhook(headers={"x-a": value})).values()
    assert problem.message == "not a valid header value"


def test_headers() -> None:
    good = {"Authorization": "Bearer x", "Content-Type": "text/plain", "X-Empty": "", "x-tab": "a\tb", "x-ü": "x"}
    assert list(problems(webhook(headers=good))) == ["target.headers.x-ü"]
    assert problems(webhook(headers={"x-umlaut": "über"})) == {}


def test_headers_twice_and_too_many() -> None:
    assert "target.headers.x-a" in problems(webhook(headers={"X-A": "1", "x-a": "2"}))
    assert problems(webhook(headers={f"x-{n}": "" for n in range(100)})) == {}
    assert "target.headers" in problems(webhook(headers={f"x-{n}": "" for n in range(101)}))


@pytest.mark.parametrize("secret", ["whsec_" + "A" * 32, "whsec_" + "A" * 84 + "AA==", "sixteen letters!", "x" * 500])
def test_secrets(secret: str) -> None:
    assert problems(webhook(secret=secret)) == {}


@pytest.mark.parametrize(
    "secret", ["", "short", "whsec_", "whsec_" + "A" * 28, "whsec_" + "A" * 88, "whsec_" + "!" * 32, "x" * 15]
)
def test_no_secrets(secret: str) -> None:
    (problem,) = problems(webhook(secret=secret)).values()
    assert problem.path == "target.secret"
    assert problem.given is None  # never repeated in an answer or a log


@pytest.mark.parametrize(
    "name", ["m:f", "package.module:function", "a.b.c:Class.method", "_m:_f", "__main__:f", "registered_name"]
)
def test_function_names(name: str) -> None:
    assert problems(spec(target=FunctionTarget(function=name))) == {}


@pytest.mark.parametrize(
    "name",
    ["", ":", "m:", ":f", "m:f:g", "m..n:f", ".m:f", "m:f()", "m:1", "m: f", "../m:f", "m:f.", "m-n:f"],
)
def test_no_function_names(name: str) -> None:
    (problem,) = problems(spec(target=FunctionTarget(function=name))).values()
    assert problem.path == "target.function"
    assert problem.accepted is not None
    assert problem.accepted.startswith('"package.module:function"')


def test_command_names() -> None:
    assert problems(spec(target=CommandTarget(command="backup"))) == {}
    assert set(problems(spec(target=CommandTarget(command=" ")))) == {"target.command"}


@settings(deadline=None, max_examples=200)
@given(SPECS)
def test_any_job_is_answered(job: JobSpec) -> None:
    assert all(problem.message for problem in problems(job).values())


def test_whether_it_can_fire_is_not_asked_here() -> None:
    assert problems(spec(schedule=Schedule(every=ZERO))) == {}


def test_a_plan_excludes_the_numbers_it_stands_for() -> None:
    numbers: dict[str, Any] = {"attempts": 3, "backoff": Duration(1000), "factor": 2.0, "max": Duration(300_000)}
    for name, value in numbers.items():
        found = problems(spec(policy=Policy(retry=Retry(plan="quick", **{name: value}))))
        assert list(found) == [f"policy.retry.{name}"]
        assert "max_age and until" in str(found[f"policy.retry.{name}"].accepted)
    assert problems(spec(policy=Policy(retry=Retry(plan="quick", max_age=Duration(1), until="next_slot")))) == {}


def test_a_one_off_has_no_next_slot() -> None:
    found = problems(spec(schedule=Schedule(in_=Duration(1)), policy=Policy(retry=Retry(until="next_slot"))))
    assert list(found) == ["policy.retry.until"]
    assert "max_age" in str(found["policy.retry.until"].accepted)


def test_what_is_left_out_of_retry() -> None:
    """A plan leaves the numbers out, so that what is read back can be sent back; and an older node, which knows neither
    plan nor until, reads every other job as it did."""
    assert msgspec.json.encode(Retry(plan=None, until=None), enc_hook=str) == (
        b'{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null}'
    )
    planned = convert({"plan": "quick", "until": "next_slot"}, Retry)
    assert to_builtins(planned) == {"max_age": None, "plan": "quick", "until": "next_slot"}
    assert convert(to_builtins(planned), Retry) == planned
    assert level_of(spec(policy=Policy(retry=planned))) == level_of(spec(policy=Policy(retry=Retry(plan="quick")))) == 3
    assert level_of(spec(policy=Policy(retry=Retry(attempts=9)))) == 1


NEW, OLD = "a new secret of 24 characters", "an old secret of 24 characters"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"secrets": []}, "target.secrets"),
        ({"secrets": [NEW, OLD, "a third secret of that length"]}, "target.secrets"),
        ({"secrets": [NEW, "short"]}, "target.secrets[1]"),
        ({"secrets": [NEW, NEW]}, "target.secrets[1]"),
        ({"secrets": [NEW, OLD], "secret": OLD}, "target.secrets"),
    ],
)
def test_two_live_secrets(fields: dict[str, Any], path: str) -> None:
    found = problems(webhook(**fields))
    assert list(found) == [path]
    assert not any(secret in str(found[path]) for secret in (NEW, OLD, "short"))
    assert problems(webhook(secrets=[NEW, OLD])) == problems(webhook(secrets=[NEW])) == {}
    assert level_of(webhook(secrets=[NEW])) == 3
