"""Functions of AWS Lambda: a strict fake for all that a function can answer, and moto, which is somebody else's."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import boto3
import pytest

from onthedot.errors import NotAvailable
from onthedot.model.run import Outcome
from onthedot.model.targets import LambdaTarget
from onthedot.settings import AwsSetting
from onthedot.targets import Call
from onthedot.targets.aws import service
from onthedot.targets.aws_lambda import kind as kind_module
from onthedot.targets.aws_lambda.kind import Lambdas
from tests.services.fake_aws import KEY, REGION, SECRET, FakeAws, echoes, fails, hangs, refuses
from tests.services.simulated import running_sqs
from tests.services.waiting import until
from tests.targets.sending import NotBegun, send


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def aws() -> AsyncIterator[FakeAws]:
    async with FakeAws() as fake:
        fake.functions |= {"echo": echoes, "fails": fails, "hangs": hangs}
        yield fake


@pytest.fixture
async def lambdas(aws: FakeAws) -> AsyncIterator[Lambdas]:
    async with Lambdas(AwsSetting(region=REGION, endpoint=aws.url)) as kind:
        yield kind


def call(function: str = "echo", *, callback: str | None = None, **fields: Any) -> Call:
    params = fields.pop("params", {"day": "monday"})
    target = LambdaTarget(function=function, **fields)
    return Call(
        run_id="7-1000", job_id=7, slot=1000, attempt=2, key="report", params=params, target=target, callback=callback
    )


async def test_the_answer_is_the_result_and_the_log_is_kept(aws: FakeAws, lambdas: Lambdas):
    told: list[str] = []
    asked = call()
    asked.log = told.append
    outcome = await send(lambdas, asked)
    assert (outcome.kind, outcome.detail["result"], outcome.detail["version"]) == ("ok", {"day": "monday"}, "$LATEST")
    assert told == ["START echo\nEND echo\n"]
    (invoked,) = aws.invoked
    assert invoked.event == {"day": "monday"}
    assert invoked.context["custom"] == {
        "run_id": "7-1000",
        "job_id": "7",
        "job_key": "report",
        "scheduled_for": "1970-01-01T00:00:01.000Z",
        "attempt": "2",
    }


async def test_an_event_is_done_when_it_is_taken_and_says_which_run_it_is(aws: FakeAws, lambdas: Lambdas):
    outcome = await send(lambdas, call(invocation="event"))
    assert (outcome.kind, outcome.detail["status_code"], outcome.detail.get("result")) == ("ok", 202, None)
    (invoked,) = aws.invoked
    assert (invoked.kind, invoked.event["day"]) == ("Event", "monday")
    assert invoked.event["onthedot"]["run_id"] == "7-1000"


async def test_values_of_the_run_are_filled_in_and_a_callback_is_in_the_payload(aws: FakeAws, lambdas: Lambdas):
    payload = {"id": {"$": "run_id"}, "day": {"$": "params.day"}, "tell": {"$": "callback"}}
    await send(lambdas, call(payload=payload, callback="http://here/complete?token=x"))
    event = aws.invoked[0].event
    assert event.pop("onthedot")["callback"] == "http://here/complete?token=x"
    assert event == {"id": "7-1000", "day": "monday", "tell": "http://here/complete?token=x"}
    refused = await send(lambdas, call(payload={"x": {"$": "params.gone"}}))
    assert (refused.kind, refused.error) == ("refused", "target.payload: no parameter 'gone' in params")


async def test_a_function_that_raises_has_failed_and_is_there(lambdas: Lambdas):
    outcome = await send(lambdas, call("fails"))
    assert (outcome.kind, outcome.retryable) == ("error", True)
    assert outcome.error == "the function failed: ValueError: no such customer"
    assert json.loads(outcome.detail["response"])["errorType"] == "ValueError"
    assert lambdas.answered(outcome) is True


@pytest.mark.parametrize(
    ("status", "code", "retried"),
    [
        (429, "TooManyRequestsException", True),
        (500, "ServiceException", True),
        (409, "ResourceConflictException", True),
        (403, "AccessDeniedException", False),
        (413, "RequestTooLargeException", False),
    ],
)
async def test_what_aws_refuses(aws: FakeAws, lambdas: Lambdas, status: int, code: str, retried: bool):
    aws.functions["it"] = refuses(status, code)
    outcome = await send(lambdas, call("it"))
    assert (outcome.kind, outcome.retryable) == ("error", retried)
    assert outcome.error == f"AWS Lambda: {code}: as the test wants it"
    assert lambdas.answered(outcome) is (False if retried else None)


async def test_a_function_that_does_not_exist_is_not_asked_for_again(lambdas: Lambdas):
    outcome = await send(lambdas, call("gone"))
    assert (outcome.retryable, outcome.error) == (
        False,
        "AWS Lambda: ResourceNotFoundException: Function not found: gone",
    )


async def test_keys_that_are_changed_are_found_again(aws: FakeAws, lambdas: Lambdas, monkeypatch: pytest.MonkeyPatch):
    assert (await send(lambdas, call())).ok
    aws.key = "AKIANEW"
    for _ in range(3):
        outcome = await send(lambdas, call())
        assert (outcome.kind, outcome.retryable) == ("error", True)
        assert "UnrecognizedClientException" in str(outcome.error)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANEW")
    assert (await send(lambdas, call())).ok
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    aws.secret = "other"
    assert "InvalidSignatureException" in str((await send(lambdas, call())).error)


async def test_without_credentials_it_says_so(aws: FakeAws, monkeypatch: pytest.MonkeyPatch, tmp_path: Any):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    kind = Lambdas(AwsSetting(region=REGION, endpoint=aws.url))
    async with kind:
        outcome = await send(kind, call())
    assert (outcome.retryable, outcome.error) == (True, "AWS Lambda was not reached: Unable to locate credentials")
    (diagnosis,) = await kind.diagnose()
    assert diagnosis.found == f"{aws.url}: Unable to locate credentials"
    assert diagnosis.advice is not None


async def test_one_that_was_restarted_is_found_again(aws: FakeAws, lambdas: Lambdas):
    assert (await send(lambdas, call())).ok
    hanging = asyncio.create_task(send(lambdas, call("hangs")))
    await until(lambda: aws.invoked[-1].function == "hangs", "it was called")
    await aws.stop()
    cut = await hanging
    assert (cut.kind, cut.retryable) == ("error", True)
    away = await send(lambdas, call())
    assert (away.retryable, str(away.error).partition(":")[0]) == (True, "AWS Lambda was not reached")
    assert lambdas.answered(away) is False
    await aws.start()
    assert (await send(lambdas, call())).ok


async def test_a_call_that_is_cancelled_ends(aws: FakeAws, lambdas: Lambdas):
    hanging = asyncio.create_task(send(lambdas, call("hangs")))
    await until(lambda: bool(aws.invoked), "it was called")
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_a_function_that_never_answers_times_out(aws: FakeAws, lambdas: Lambdas, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kind_module, "ANSWERS_WITHIN", 0.05)
    outcome = await send(lambdas, call("hangs"))
    assert (outcome.kind, outcome.error) == ("timeout", "AWS Lambda did not answer within 0.05 s")


async def test_a_call_that_lost_its_right_meanwhile_does_not_begin(aws: FakeAws):
    kind = Lambdas(AwsSetting(region=REGION, endpoint=aws.url))
    asked = call()
    allowed = iter([True, False])
    asked.may_begin = lambda: next(allowed)
    with pytest.raises(NotBegun):
        await send(kind, asked)
    assert aws.invoked == []
    await kind.__aexit__()


async def test_what_doctor_says(aws: FakeAws, monkeypatch: pytest.MonkeyPatch):
    kind = Lambdas(AwsSetting(region=REGION, endpoint=aws.url))
    assert [(found.found, found.advice) for found in await kind.diagnose()] == [
        (f"{aws.url} is reachable, login accepted", None)
    ]
    assert await Lambdas(AwsSetting()).diagnose() == []
    monkeypatch.setattr(service, "find_spec", lambda name: None)
    (missing,) = await kind.diagnose()
    assert missing.advice == "pip install 'onthedot[aws]'"


def test_what_is_not_there_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch):
    target = LambdaTarget(function="report")
    with pytest.raises(NotAvailable) as raised:
        Lambdas(AwsSetting()).check(target)
    assert "region" in str(raised.value.problems[0].accepted)
    assert Lambdas(AwsSetting()).capabilities() == []
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    Lambdas(AwsSetting()).check(target)
    assert Lambdas(AwsSetting()).capabilities() == ["lambda"]
    monkeypatch.setattr(service, "find_spec", lambda name: None)
    with pytest.raises(NotAvailable) as raised:
        Lambdas(AwsSetting(region="eu-west-1")).check(target)
    assert raised.value.problems[0].accepted == "pip install 'onthedot[aws]'"


@pytest.mark.parametrize("name", ["report", "report:live", "arn:aws:lambda:eu-west-1:123456789012:function:report:3"])
def test_names_of_functions(name: str):
    assert list(LambdaTarget(function=name).problems()) == []
    assert Lambdas(AwsSetting()).destination(LambdaTarget(function=name)) == name


def test_what_is_wrong_is_named():
    assert [found.path for found in LambdaTarget(function="a b").problems()] == ["target.function"]
    found = LambdaTarget(function="a", payload={"x": {"$": "colour"}}).problems_with({})
    assert [problem.path for problem in found] == ["target.payload.x.$"]
    found = LambdaTarget(function="a", payload=[1]).problems_with({}, callback=True)
    assert [problem.path for problem in found] == ["target.payload"]


def test_with_moto():
    """It answers what it is sent. What it is sent is read by code that is not ours."""

    async def outcomes(endpoint: str) -> list[Outcome]:
        async with Lambdas(AwsSetting(region=REGION, endpoint=endpoint)) as kind:
            assert (await kind.diagnose())[0].advice is None
            return [await send(kind, call()), await send(kind, call(invocation="event"))]

    with running_sqs() as server:
        endpoint = f"http://127.0.0.1:{server.port}"
        config = urllib.request.Request(f"{endpoint}/moto-api/config", data=b'{"lambda": {"use_docker": false}}')
        urllib.request.urlopen(config).close()
        client = boto3.client("iam", region_name=REGION, endpoint_url=endpoint)
        role = client.create_role(RoleName="it", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        client.close()
        client = boto3.client("lambda", region_name=REGION, endpoint_url=endpoint)
        client.create_function(
            FunctionName="echo", Runtime="python3.12", Role=role, Handler="it.it", Code={"ZipFile": b"x"}
        )
        client.close()
        answered, taken = asyncio.run(outcomes(endpoint))
    assert (answered.kind, answered.detail["result"]) == ("ok", {"day": "monday"})
    assert (taken.kind, taken.detail["status_code"], "result" in taken.detail) == ("ok", 202, False)
