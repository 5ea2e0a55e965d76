"""Rows to jobs: what an older release makes of a newer one's jobs."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.errors import StoreError
from onthedot.model.decoding import to_builtins
from onthedot.model.job import JobSpec
from onthedot.store.jobs.rows import SEARCHED, decode_spec, search_text, spec_columns
from tests.store.given import spec


def test_a_spec_survives_the_store() -> None:
    job = spec(
        key="k",
        schedule={"every": "90s", "start": "2030-01-01", "count": 3},
        policy={"timeout": "1.5s", "retry": {"backoff": "200ms", "max_age": "1h"}, "jitter": "5s"},
        params={"deep": [{"x": None}, 1.5, "é"]},
        tags=["a"],
    )
    assert decode_spec(spec_columns(job)["spec"]) == job


def test_fields_of_a_newer_release_are_dropped() -> None:
    loose = to_builtins(spec(key="k"))
    loose["mood"] = "good"
    loose["policy"]["retry"]["luck"] = {"a": 1}
    assert decode_spec(msgspec.json.encode(loose).decode()) == spec(key="k")


def test_a_kind_that_is_not_known_here_stays_as_it_is() -> None:
    loose = to_builtins(spec(key="k"))
    loose["target"] = {"type": "teleport", "to": "Mars", "luck": 1.5, "deep": [{"x": None}]}
    loose["policy"]["luck"] = 1
    found = decode_spec(msgspec.json.encode(loose).decode(), "teleport:mars", 7)
    assert type(found) is JobSpec
    assert msgspec.structs.replace(found, target=spec().target) == spec(key="k"), "all but the target is read"
    columns = spec_columns(found)
    assert msgspec.json.decode(columns["spec"])["target"] == loose["target"]
    assert (columns["level"], columns["requires"], columns["target_type"]) == (7, "teleport:mars", "teleport")


def test_a_kind_that_is_known_but_wrong_is_said_so() -> None:
    loose = to_builtins(spec())
    loose["target"] = {"type": "webhook", "url": 3}
    with pytest.raises(StoreError, match="newer version"):
        decode_spec(msgspec.json.encode(loose).decode())


def test_columns_for_claims_and_lists() -> None:
    target = {"type": "command", "command": "c"}
    columns = spec_columns(spec(key="Ab", name="Ärger", schedule={"in": "5s"}, target=target))
    del columns["spec"]
    assert columns == {
        "key": "Ab",
        "name": "Ärger",
        "key_search": "ab",
        "name_search": "ärger",
        "level": 1,
        "requires": "command:c",
        "target_type": "command",
        "schedule_kind": "in",
        "one_off": True,
        "owner": None,
    }


def test_search_text_is_bounded() -> None:
    assert search_text(None) is None
    assert search_text("Straße") == "strasse"
    assert len(search_text("ΐ" * 500) or "") == SEARCHED
