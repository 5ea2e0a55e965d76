"""`[intake.NAME]`: what is read, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onthedot.errors import SettingsError
from onthedot.intake import check_intakes, examine_intakes
from onthedot.settings import INTAKE_OPERATIONS, IntakeSetting, Settings, load_settings

GOOD = {"broker": "it", "topic": "jobs", "dead_letter": "jobs.dead"}
BROKERS = json.dumps({"it": {"url": "nats://127.0.0.1:4222"}, "aws": {"url": "sqs://eu-west-1"}})


def load(tmp_path: Path, **fields: Any) -> Settings:
    table = {name: value for name, value in (GOOD | fields).items() if value is not None}
    environ = {"ONTHEDOT_BROKERS": BROKERS, "ONTHEDOT_INTAKE": json.dumps({"orders": table})}
    file = tmp_path / "onthedot.toml"
    file.write_text("")
    return load_settings({}, environ, file)


def test_a_table_is_read_from_the_file_and_from_the_environment(tmp_path: Path):
    file = tmp_path / "onthedot.toml"
    file.write_text(
        '[brokers.it]\nurl = "nats://127.0.0.1:4222"\n'
        '[intake.orders]\nbroker = "it"\ntopic = "jobs"\ndead_letter = "jobs.dead"\nallow = ["run"]\n'
    )
    from_file = load_settings({}, {}, file).intake["orders"]
    assert from_file == IntakeSetting(**GOOD, allow=("run",))
    assert load(tmp_path).intake["orders"].allow == INTAKE_OPERATIONS
    assert from_file.group_of("a.b") == "onthedot-a-b"
    assert load(tmp_path, group="mine").intake["orders"].group_of("orders") == "mine"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"dead_letter": None}, "intake.orders.dead_letter: required field is missing"),
        ({"dead_letter": "jobs"}, "topic and dead_letter must differ"),
        ({"topic": ""}, "must not be empty"),
        ({"colour": 1}, "intake.orders.colour: unknown field"),
        ({"allow": ["create", "explode"]}, "allow: unknown 'explode'"),
        ({"allow": []}, "allow must not be empty"),
        ({"group": "a b"}, "group must have"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_accepted(tmp_path: Path, fields: dict[str, Any], says: str):
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, **fields)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"broker": "other"}, "intake.orders.broker: 'other' is not configured. Configured: aws, it"),
        ({"topic": "a b"}, "intake.orders.topic: 'a b' is not valid. Accepted: a subject"),
        ({"dead_letter": "a.*"}, "intake.orders.dead_letter: 'a.*' is not valid"),
        ({"broker": "aws", "topic": "a.b"}, "Accepted: the name of a queue"),
    ],
)
async def test_what_the_broker_can_not_take_stops_the_node_and_doctor_says_why(
    tmp_path: Path, fields: dict[str, Any], says: str
):
    settings = load(tmp_path, **fields)
    with pytest.raises(SettingsError) as refused:
        check_intakes(settings)
    assert says in str(refused.value)
    (found,) = await examine_intakes(settings)
    assert says in found.found
    assert found.advice is not None
