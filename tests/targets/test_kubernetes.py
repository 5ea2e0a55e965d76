"""Jobs of a cluster: what they get, how they end, who finds them again, and what happens without its API server."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onthedot.model.duration import Duration
from onthedot.model.run import Outcome
from onthedot.model.targets import KubernetesTarget
from onthedot.settings import KubernetesSetting, KubernetesTemplate
from onthedot.targets import Call
from onthedot.targets.contract import Cause, Ended, Handle, Stop
from onthedot.targets.kubernetes.kind import KubernetesJobs
from onthedot.telemetry import Event, subscribe
from tests.services.kubernetes_api import CLUSTER_UID, TOKEN, KubernetesServer, running_kubernetes
from tests.services.waiting import until

_numbers = itertools.count(1)
OURS = "0123456789abcdef"
JOBS = "/apis/batch/v1/namespaces/jobs/jobs"
WAITS = 'echo one; while ! [ -e "$HERE/$ONTHEDOT_RUN_ID" ]; do sleep 0.05; done; echo two; echo "[1]"'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KubernetesServer]:
    with running_kubernetes(tmp_path) as server:
        yield server


class Watched:
    """One call and all that was told of it."""

    def __init__(self, kind: KubernetesJobs, *args: str, run: str | None = None, **fields: Any) -> None:
        self.log: list[str] = []
        self.begun: list[float] = []
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        target = {name: fields.pop(name) for name in KubernetesTarget.__struct_fields__ if name in fields}
        image = {} if "template" in target else {"image": "registry.test/team/app:1", "args": list(args)}
        self.call = Call(
            run_id=run or f"7-{next(_numbers)}",
            job_id=7,
            slot=1_763_234_567_890,
            attempt=1,
            target=msgspec.convert({"type": "kubernetes"} | image | target, KubernetesTarget),
            log=self.log.append,
            begun=self.begun.append,
            **fields,
        )
        assert list(self.call.target.problems()) == []
        self.name = f"{self.call.run_id}-{self.call.try_number}"
        self.handle: Handle = kind.start(self.call, time.monotonic(), self.ended.set_result)

    async def outcome(self) -> Outcome:
        outcome = (await asyncio.wait_for(asyncio.shield(self.ended), 30)).outcome
        assert outcome is not None
        return outcome

    async def stopped(self, cause: Cause) -> Ended:
        assert self.handle.stop(cause) is Stop.STOPPING
        return await asyncio.wait_for(asyncio.shield(self.ended), 30)

    @property
    def text(self) -> str:
        return "".join(self.log)

    async def says(self, words: str) -> None:
        await until(lambda: words in self.text, f"it says {words!r}")

    def go(self, server: KubernetesServer) -> None:
        (server.home / self.call.run_id).touch()


@asynccontextmanager
async def node(server: KubernetesServer, installation: str = OURS, **setting: Any) -> AsyncIterator[KubernetesJobs]:
    given: dict[str, Any] = {
        "kubeconfig": str(server.kubeconfig()),
        "images": ("registry.test/team/*",),
        "keep": Duration(0),
    }
    kind = KubernetesJobs(KubernetesSetting(**(given | setting)), capacity=4)
    kind.belong_to(installation)
    async with kind:
        yield kind


@pytest.fixture
async def kind(server: KubernetesServer) -> AsyncIterator[KubernetesJobs]:
    async with node(server) as kind:
        yield kind


SHOW = 'echo "$COLOUR $1 \\$(COLOUR)" >&2; echo "{\\"run\\": \\"$ONTHEDOT_RUN_ID\\", \\"params\\": $ONTHEDOT_PARAMS}"'


async def test_it_runs_once_without_privileges_and_its_last_line_is_the_result(server, kind):
    watched = Watched(
        kind,
        *("-c", SHOW, "sh", "$(COLOUR)"),
        command=["sh"],
        env={"COLOUR": "red"},
        resources={"limits": {"memory": "32Mi"}, "requests": {"cpu": 0.5}},
        params={"day": "$(COLOUR)"},
        timeout=60,
    )
    outcome = await watched.outcome()
    assert outcome.kind == "ok", outcome
    assert outcome.detail == {"exit_code": 0, "result": {"run": watched.call.run_id, "params": {"day": "$(COLOUR)"}}}
    assert watched.text.startswith("red $(COLOUR) "), "what looks like a variable of Kubernetes is left alone"
    job = server.job(watched.name)
    assert job is not None
    labels = job["metadata"]["labels"]
    assert labels == {
        "onthedot.installation": OURS,
        "onthedot.run": watched.call.run_id,
        "onthedot.try": "1",
        "onthedot.tenant": "1",
    }
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["podReplacementPolicy"], spec["activeDeadlineSeconds"]) == (0, "Failed", 120)
    assert spec["podFailurePolicy"]["rules"][0]["action"] == "FailJob"
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
    (container,) = pod["containers"]
    assert container["resources"] == {"limits": {"cpu": "1", "memory": "32Mi"}, "requests": {"cpu": "0.5"}}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("before", ["", "echo begins;"])
async def test_a_result_is_found_before_many_blank_lines(kind, before):
    watched = Watched(kind, "-c", f"{before} echo [7]; for i in $(seq 30); do echo; done", command=["sh"])
    assert (await watched.outcome()).detail == {"exit_code": 0, "result": [7]}


async def test_how_it_fails(server, kind):
    failed, oom, absent, evicted = (
        Watched(kind, "sh", "-c", "echo oh; exit 3"),
        Watched(kind, "true", image="registry.test/team/hungry:1", resources={"limits": {"memory": "16Mi"}}),
        Watched(kind, "no-such-program"),
        Watched(kind, "sh", "-c", WAITS),
    )
    outcome = await failed.outcome()
    assert (outcome.kind, outcome.retryable, outcome.error) == ("error", True, "exit code 3")
    assert failed.text == "oh\n"
    assert (await oom.outcome()).error == "out of memory (limit 16 MB)"
    assert (await absent.outcome()).error == "exit code 127 (command not found)"
    await evicted.says("one\n")
    server.call(lambda: server.cluster.evict(evicted.name))
    outcome = await evicted.outcome()
    assert outcome.error == "its pod was ended by the cluster: EvictionByEvictionAPI: Eviction API: evicting"
    assert server.cluster.started[evicted.name] == 1


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("missing", "ImagePullBackOff: Back-off pulling image"),
        ("missing", "Failed: Failed to pull image"),
        ("unschedulable", "Unschedulable: 0/3 nodes are available: 3 Insufficient memory."),
        ("forbidden", 'it has no pod; FailedCreate: pods "x" is forbidden: exceeded quota'),
    ],
)
async def test_what_does_not_start_says_why(server, image, words):
    async with node(server, start_within=Duration(300)) as kind:
        watched = Watched(kind, image=f"registry.test/team/{image}:1")
        outcome = await watched.outcome()
        assert (outcome.kind, outcome.retryable) == ("error", True)
        assert str(outcome.error).startswith("not started within 300ms: ")
        assert words in str(outcome.error)
        assert watched.name not in server.jobs()


async def test_what_did_not_start_in_its_own_time_says_that_instead_of_timed_out(server, kind):
    watched = Watched(kind, image="registry.test/team/unschedulable:1", timeout=5)
    await until(lambda: server.job(watched.name), "it is made")
    await until(lambda: any("FailedScheduling" in str(each) for each in events_of(server)), "it can't be placed")
    ended = await watched.stopped("timeout")
    assert ended.outcome is not None
    assert (ended.outcome.kind, ended.outcome.retryable) == ("timeout", True)
    assert str(ended.outcome.error).startswith("not started within 5 s: Unschedulable: ")
    assert watched.name not in server.jobs()


def events_of(server: KubernetesServer) -> list[Any]:
    return server.call(lambda: [found for key, found in server.cluster.objects.items() if key[0] == "events"])


@pytest.mark.parametrize("cause", ["cancelled", "timeout"])
async def test_stopped_it_gets_a_signal_and_time_to_tidy_up(server, kind, cause):
    watched = Watched(
        kind, "sh", "-c", "trap 'sleep 0.7; echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    )
    await watched.says("ready\n")
    ended = await watched.stopped(cause)
    assert (ended.outcome, ended.began) == (None, watched.begun[0])
    assert watched.text == "ready\ntidy\n"
    assert watched.name not in server.jobs(), "it is gone when its pod is"


async def test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on(server, kind):
    first = Watched(kind, "sh", "-c", WAITS)
    await first.says("one\n")
    assert await first.stopped("interrupted") == Ended(None, first.begun[0])
    async with node(server) as other:
        second = Watched(other, run=first.call.run_id, adopted=True)
        await second.says("one\n")
        assert second.begun[0] == pytest.approx(first.begun[0], abs=1.5), "as old as it is"
        first.go(server)
        outcome = await second.outcome()
        assert (outcome.kind, outcome.detail["result"]) == ("ok", [1])
        assert second.text == "one\ntwo\n[1]\n", "its log is whole"
        third = Watched(other, run=first.call.run_id, adopted=True)
        assert (await third.outcome()).detail["result"] == [1], "what has ended is the result"
    assert server.cluster.started[first.name] == 1, "and is no reason to run it again"


async def test_two_who_have_the_same_try_run_one_job(server, kind):
    async with node(server) as other:
        both = [Watched(each, "sh", "-c", "sleep 0.3; echo once", run="7-777") for each in (kind, other)]
        assert [(await each.outcome()).kind for each in both] == ["ok", "ok"]
    assert [each.text for each in both] == ["once\n", "once\n"]
    assert server.cluster.started["7-777-1"] == 1


async def test_gone_it_is_unknown_where_it_may_run_once_only(server, kind):
    outcome = await Watched(kind, "true", adopted=True, may_create=False).outcome()
    assert (outcome.kind, outcome.error) == ("unknown", "its Job is gone, and nobody knows whether it ran")
    removed = Watched(kind, "sh", "-c", WAITS)
    await removed.says("one\n")
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    server.call(lambda: server.cluster.delete_job("jobs", removed.name, options))
    outcome = await removed.outcome()
    assert outcome.error == "its Job was removed by somebody else before its result was read"


async def test_what_is_gone_while_another_cluster_answers_is_not_gone(server, kind):
    """The address was given to another cluster for a moment: only who had the Job can say that it is gone."""
    server.uid = "another"
    watched = Watched(kind, "true", adopted=True)
    assert await asyncio.wait_for(watched.ended, 30) == Ended(None, None)
    assert watched.name not in server.jobs()
    server.uid = CLUSTER_UID
    placed = Watched(kind, "true", adopted=True, place="kubernetes@another/jobs")
    assert await asyncio.wait_for(placed.ended, 30) == Ended(None, None), "it is another's, whoever answers now"


async def test_adopted_it_is_not_gone_because_another_cluster_was_asked_for_it(server, kind):
    """The other one has answered, and the right one is back before anybody asks who it is."""
    first = Watched(kind, "true")
    await first.outcome()
    server.refusals[f"GET {JOBS}/{first.name}"] = [404]
    again = Watched(kind, run=first.call.run_id, adopted=True, may_create=False, place=f"kubernetes@{CLUSTER_UID}/jobs")
    assert (await again.outcome()).kind == "ok"
    assert server.cluster.started[first.name] == 1


async def test_who_may_not_begin_any_more_creates_nothing(server, kind):
    watched = Watched(kind, "true", may_begin=iter([True, False, False]).__next__)
    assert await asyncio.wait_for(watched.ended, 30) == Ended(None, None)
    assert (watched.name in server.jobs(), watched.begun) == (False, [])


async def test_a_job_of_another_installation_is_not_ours(server, kind):
    async with node(server, "ffffffffffffffff") as theirs:
        other = Watched(theirs, "sh", "-c", WAITS)
        await other.says("one\n")
        ours = await Watched(kind, "true", run=other.call.run_id).outcome()
        assert "not of this installation" in str(ours.error)
        assert not ours.retryable
        assert other.name not in await kind.inventory()
        assert await kind.remove(other.name) is False
        await other.stopped("interrupted")
        await theirs.inventory()
        assert await theirs.remove(other.name) is True


async def test_the_next_try_first_ends_what_is_left_of_the_one_before(server, kind):
    first = Watched(kind, "sh", "-c", WAITS)
    await first.says("one\n")
    await first.stopped("interrupted")
    assert (await Watched(kind, "true", run=first.call.run_id, try_number=2).outcome()).kind == "ok"
    await until(lambda: first.name not in server.jobs(), "it is gone")
    failed = Watched(kind, "false")
    await failed.outcome()
    assert (await Watched(kind, "true", run=failed.call.run_id, try_number=2).outcome()).kind == "ok"
    assert failed.name in server.jobs(), "what has ended is kept for who wants to look at it"


async def test_only_what_is_over_for_a_while_is_left_to_be_removed(server):
    server.most_per_page = 1
    async with node(server, "aaaaaaaaaaaaaaaa", keep=Duration(600_000)) as kind:
        done, failed, runs = Watched(kind, "true"), Watched(kind, "false"), Watched(kind, "sh", "-c", WAITS)
        await done.outcome()
        await failed.outcome()
        await runs.says("one\n")
        assert await kind.inventory() == [runs.name], "who comes late must find the name taken"
        server.call(lambda: [server.cluster.age(each.name, 700) for each in (done, failed)])
        assert set(await kind.inventory()) == {done.name, runs.name}, "a failed one is kept for an hour"
        server.call(lambda: server.cluster.age(done.name, 5))
        assert await kind.remove(done.name) is False, "it was listed before, and has ended since"
        server.call(lambda: [server.cluster.age(each.name, 3700) for each in (done, failed)])
        await runs.stopped("interrupted")
        for name in await kind.inventory():
            assert await kind.remove(name) is True
        await until(lambda: {done.name, failed.name, runs.name}.isdisjoint(server.jobs()), "all are gone")


@pytest.fixture
def events() -> Iterator[list[Event]]:
    told: list[Event] = []
    stop = subscribe(told.append)
    yield told
    stop()


async def test_a_restart_of_the_api_server_is_survived_and_followed(server, kind, events):
    watched = Watched(kind, "sh", "-c", WAITS)
    await watched.says("one\n")
    offered = kind.capabilities()
    assert offered == ["kubernetes", f"kubernetes@{CLUSTER_UID}/jobs"]
    await asyncio.to_thread(server.stop)
    await until(lambda: kind.capabilities() == [], "it is seen that it is away")
    waits = Watched(kind, "true")
    assert await asyncio.wait_for(waits.ended, 30) == Ended(None, None), "not begun: it goes back"
    watched.go(server)
    server.cluster.compact()
    await asyncio.to_thread(server.start)
    assert (await watched.outcome()).detail == {"exit_code": 0, "result": [1]}
    assert watched.text == "one\ntwo\n[1]\n", "nothing twice"
    await until(lambda: kind.capabilities() == offered, "it is back, the same as before")
    told = [event.name for event in events if event.name.startswith("kubernetes.")]
    assert told == ["kubernetes.unavailable", "kubernetes.cluster"]


@pytest.mark.parametrize(("as_event", "cut"), [(True, False), (False, False), (True, True)])
async def test_cut_watches_go_on_and_one_that_is_too_old_is_listed_again(server, kind, as_event, cut):
    server.gone_as_event = as_event
    watched = Watched(kind, "sh", "-c", WAITS)
    await watched.says("one\n")
    lists = server.count(f"GET {JOBS}?labelSelector")
    server.call(server.cluster.compact)
    await asyncio.to_thread(server.drop_streams if cut else server.end_watches)
    await until(lambda: server.count(f"GET {JOBS}?labelSelector") > lists, "it is listed again")
    watched.go(server)
    assert (await watched.outcome()).kind == "ok"
    assert watched.text == "one\ntwo\n[1]\n"
    assert server.count(f"GET {JOBS}/{watched.name}") <= 2, "the watch tells, nobody polls"


async def test_a_lost_answer_to_create_makes_no_second_job(server, kind):
    server.lost_answers[f"POST {JOBS}"] = 1
    watched = Watched(kind, "true")
    assert (await watched.outcome()).kind == "ok"
    assert server.cluster.started[watched.name] == 1


async def test_a_server_that_can_not_answer_now_is_asked_again(server, kind):
    server.refusals[f"POST {JOBS}"] = [500, 429]
    watched = Watched(kind, "true")
    assert (await watched.outcome()).kind == "ok"
    assert server.cluster.started[watched.name] == 1


async def test_what_the_server_refuses_is_said_and_not_repeated_if_it_is_wrong(server, kind):
    wrong = await Watched(
        kind,
        "true",
        resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "1Gi"}},
        service_account=None,
        env={"A": "x"},
        timeout=3,
    ).outcome()
    assert wrong.kind == "ok"
    more = {"limits": {"memory": "1Mi"}, "requests": {"memory": "2Mi"}}
    wrong = await Watched(kind, "true", resources=more).outcome()
    assert "422 Invalid" in str(wrong.error)
    assert (wrong.kind, wrong.retryable) == ("error", False)
    server.denied.add(("create", "jobs"))
    denied = await Watched(kind, "true").outcome()
    assert str(denied.error).startswith("not started: Kubernetes refused it: 403 Forbidden: jobs is forbidden")
    assert denied.retryable


async def test_wrong_credentials_are_told_and_right_ones_are_taken_at_once(server):
    file = server.kubeconfig(token=None, tokenFile="token")
    (server.home / "token").write_text("wrong")
    async with node(server, kubeconfig=str(file)) as kind:
        assert kind.capabilities() == []
        (found,) = await kind.diagnose()
        assert (found.found, found.is_error) == ("401 Unauthorized: Unauthorized", True)
        assert "renew the token" in str(found.advice)
        (server.home / "token").write_text(f"{TOKEN}\n")
        await until(kind.capabilities, "the right one is taken")
        watched = Watched(kind, "sh", "-c", WAITS)
        await watched.says("one\n")
        server.tokens = {"next"}
        (server.home / "token").write_text("next")
        watched.go(server)
        await asyncio.to_thread(server.drop_streams)
        assert (await watched.outcome()).detail["result"] == [1], "tokens are replaced while Jobs run"


async def test_a_template_of_the_operator(server):
    pod = {
        "metadata": {"labels": {"team": "reports"}},
        "spec": {
            "containers": [
                {
                    "name": "report",
                    "image": "any.test/x:1",
                    "command": ["sh", "-c", 'echo "\\"$COLOUR\\""'],
                    "env": [{"name": "COLOUR", "value": "blue"}, {"name": "ONTHEDOT_RUN_ID", "value": "x"}],
                }
            ],
        },
    }
    templates = {"report": KubernetesTemplate(pod=pod, namespace="reports")}
    async with node(server, images=(), templates=templates) as kind:
        assert f"kubernetes@{CLUSTER_UID}/reports" in kind.capabilities()
        watched = Watched(kind, template="report")
        assert (await watched.outcome()).detail["result"] == "blue"
        job = server.job(watched.name, "reports")
        assert job is not None
        assert job["spec"]["template"]["metadata"]["labels"]["team"] == "reports"
        refused = await Watched(kind, "true").outcome()
        assert refused.kind == "refused"


async def test_a_server_that_hangs_is_left_alone_by_a_timeout(server, kind, monkeypatch):
    watched = Watched(kind, "sh", "-c", WAITS)
    await watched.says("one\n")
    server.freeze()
    monkeypatch.setattr("onthedot.targets.kubernetes.following.STOP_WITHIN", 0.2)
    monkeypatch.setattr("onthedot.targets.kubernetes.following.STOP_AGAIN_FOR", 0.2)
    began = time.monotonic()
    ended = await watched.stopped("timeout")
    assert (ended.outcome, time.monotonic() - began < 10) == (None, True)
    server.thaw()
    await kind.inventory()
    await kind.remove(watched.name)


async def test_doctor_says_what_is_missing(server, kind):
    (found,) = await kind.diagnose()
    assert found.advice is None
    assert "v1.33.1 at http://127.0.0.1" in found.found
    server.denied.add(("get", "pods/log"))
    (found,) = await kind.diagnose()
    assert "it may not get pods/log in namespace jobs" in found.found
    assert "Role" in str(found.advice)
    server.denied |= {("get", "namespaces")}
    (found,) = await kind.diagnose()
    assert "[kubernetes] place" in str(found.advice)


async def test_without_a_cluster_doctor_says_where_it_looked(tmp_path: Path):
    kind = KubernetesJobs(KubernetesSetting(kubeconfig=str(tmp_path / "none"), images=("*",)))
    (found,) = await kind.diagnose()
    assert found.found == f"{tmp_path / 'none'}: No such file or directory"
    assert kind.capabilities() == []
