"""Alerts of real nodes: within seconds of the event, once however many nodes there are, and at least once when the node
that delivers is killed before it has."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from tests.cluster.nodes import post
from tests.cluster.walking import ask, shell
from tests.services.waiting import until

LEASE = 2  # seconds

DELIVER = """
import json, os, pathlib, signal, sys, time
told = json.load(sys.stdin)
place = pathlib.Path(sys.argv[1])
if told["event"] == "opened" and not (place / "killed").exists() and (place / "kill").exists():
    (place / "killed").write_text(str(os.getppid()))
    os.kill(os.getppid(), signal.SIGKILL)
    sys.exit(1)
with (place / "told").open("a") as file:
    file.write(json.dumps({**told, "heard_at": time.time()}) + "\\n")
"""


def told(place: Path) -> list[dict[str, object]]:
    file = place / "told"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def failing(key: str) -> dict[str, object]:
    target = {"type": "webhook", "url": "http://127.0.0.1:1/nobody"}
    alerts = {"failed": True, "channels": ["ops"]}
    policy = {"retry": {"attempts": 1}}
    return {"key": key, "schedule": {"in": "1ms"}, "target": target, "policy": policy, "alerts": alerts}


async def test_an_alert_survives_the_node_that_was_to_deliver_it(postgres_url, cluster, tmp_path: Path):
    (tmp_path / "deliver.py").write_text(DELIVER)
    channel = {"ops": {"command": ["python3", str(tmp_path / "deliver.py"), str(tmp_path)]}}
    env = {
        "ONTHEDOT_CHANNELS": json.dumps(channel),
        "ONTHEDOT_ALERTS": json.dumps({"all": {"on": ["node_lost"], "channels": ["ops"]}}),
        "ONTHEDOT_LEASE": f"{LEASE}s",
    }
    nodes = [cluster.start("--store", postgres_url, env=env) for _ in range(2)]
    for node in nodes:
        await node.ready()
    await post(nodes[0], "/v1/jobs", failing("first"))

    async def is_told(title: str) -> bool:
        return any(each["title"] == title for each in told(tmp_path))

    await until(lambda: is_told("first failed"), "it is told")
    (message,) = told(tmp_path)
    _, run = await ask(nodes[0], "GET", f"/v1/runs/{message['run_id']}")
    _, listed = await ask(nodes[0], "GET", "/v1/alerts")
    (incident,) = listed["items"]
    assert (incident["condition"], incident["count"], incident["run_id"]) == ("failed", 1, run["id"])
    ended = datetime.fromisoformat(run["finished_at"]).timestamp()
    assert float(str(message["heard_at"])) - ended < 5, "an alert comes within five seconds of the event"

    (tmp_path / "kill").touch()
    await post(nodes[0], "/v1/jobs", failing("second"))
    await until(lambda: is_told("second failed"), "another node tells it", within=30)
    killed = int((tmp_path / "killed").read_text())
    assert killed in [node.pid for node in nodes]
    (alive,) = [node for node in nodes if node.pid != killed]
    await until(lambda: is_told("node " + listed_name(tmp_path)), "the lost node is told", within=30)
    (lost,) = [each for each in told(tmp_path) if each["condition"] == "node_lost"]
    heard = float(str(lost["heard_at"]))
    assert heard - datetime.fromisoformat(str(lost["since"])).timestamp() < 5, "after it was declared lost"
    assert heard - (tmp_path / "killed").stat().st_mtime < LEASE + 5, "after it was killed"
    titles = [each["title"] for each in told(tmp_path)]
    assert titles.count("second failed") == 1, "the first try was killed before it had told anybody"
    _, listed = await ask(alive, "GET", "/v1/alerts?condition=failed")
    assert len(listed["items"]) == 2
    (second,) = [each for each in listed["items"] if each["title"] == "second"]
    assert [(each["state"], each["tries"]) for each in second["deliveries"]] == [("sent", 2)]

    out, code = await shell(alive, "onthedot alerts test ops", tmp_path)
    assert code == 0, out
    assert told(tmp_path)[-1]["event"] == "test"
    out, code = await shell(alive, "onthedot alerts test nobody", tmp_path)
    assert code == 1
    assert "ops" in out, "the known channels are named"


def listed_name(place: Path) -> str:
    """The title of the message about a node, without its first word."""
    found = [str(each["title"]) for each in told(place) if each["condition"] == "node_lost"]
    return found[0].removeprefix("node ") if found else "?"
