"""Values of the run in a body: what is accepted when a job is made, and what takes their place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.body_template import MissingParam, body_problems, encode_body, fill, is_template
from onthedot.model.checks import check_spec
from onthedot.model.level import level_of
from onthedot.model.policy import Policy
from onthedot.model.targets import WebhookTarget
from tests.unit.model.jobs import VALUES, spec
from tests.unit.model.test_checks import problems

VALUES_OF_A_RUN = {"run_id": "7-1", "scheduled_for": "2026-01-01T00:00:00.000Z", "attempt": 2}
PARAMS = {"user": {"id": 5, "tags": ["a"]}, "none": None}


def filled(body: Any) -> Any:
    return fill(body, VALUES_OF_A_RUN, PARAMS)


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({"run": {"$": "run_id"}}, {"run": "7-1"}),
        ([{"$": "attempt"}, {"at": {"$": "scheduled_for"}}], [2, {"at": "2026-01-01T00:00:00.000Z"}]),
        ({"$": "params.user"}, {"id": 5, "tags": ["a"]}),
        ({"a": {"b": [{"$": "params.user.id"}]}}, {"a": {"b": [5]}}),
        ({"n": {"$": "params.none"}}, {"n": None}),
        ({"price": "$5", "$$": 1, "x": ["$", "run_id"]}, {"price": "$5", "$$": 1, "x": ["$", "run_id"]}),
    ],
)
def test_it_takes_the_place_of_any_value_and_keeps_its_type(body: Any, sent: Any):
    assert list(body_problems(body, PARAMS)) == []
    assert filled(body) == sent


@pytest.mark.parametrize("name", ["params.nobody", "params.user.name", "params.user.id.x", "params.user.tags.0"])
def test_a_param_that_a_run_lacks_is_named(name: str):
    with pytest.raises(MissingParam, match=name.removeprefix("params.")):
        filled([{"$": name}])


@pytest.mark.parametrize(
    ("body", "path", "given"),
    [
        ({"a": {"$": "run"}}, "target.body.a.$", "run"),
        ([0, {"$": 7}], "target.body[1].$", "7"),
        ({"a": {"$": {"$": "run_id"}}}, "target.body.a.$", '{"$":"run_id"}'),
        ({"a": {"$": "run_id", "b": 1}}, "target.body.a", "$, b"),
        ({"$": "params.nobody"}, "target.body.$", "params.nobody"),
        ({"$": "params."}, "target.body.$", "params."),
        ({"$": "params"}, "target.body.$", "params"),
        ({"$": "callback"}, "target.body.$", "callback"),
    ],
)
def test_what_is_not_known_is_refused_with_its_path_and_what_is_accepted(body: Any, path: str, given: str):
    job = spec(target=WebhookTarget(url="https://example.com/", body=body), params={"user": 1})
    found = problems(job)
    assert list(found) == [path]
    assert found[path].given == given
    assert found[path].accepted


def test_the_accepted_names_are_listed():
    (problem,) = body_problems({"$": "job"}, {})
    assert problem.accepted == "run_id, scheduled_for, attempt, params.NAME"
    (problem,) = body_problems({"$": "job"}, {}, callback=True)
    assert problem.accepted == "run_id, scheduled_for, attempt, params.NAME, callback"
    assert list(body_problems({"$": "callback"}, {}, callback=True)) == []


def test_a_callback_is_known_where_there_is_one():
    target = WebhookTarget(url="https://example.com/", body={"tell": {"$": "callback"}})
    assert list(problems(spec(target=target))) == ["target.body.tell.$"]
    assert problems(spec(target=target, policy=Policy(completion="callback"))) == {}


def test_a_million_mistakes_are_not_a_million_lines():
    assert len(list(body_problems([{"$": "x"}] * 10_000, {}))) == 100


def test_a_name_from_before_there_were_any_goes_out_as_it_is():
    assert filled({"$": "set"}) == {"$": "set"}
    assert filled({"$": 7, "a": 1}) == {"$": 7, "a": 1}


@given(VALUES)
def test_a_body_without_templates_is_left_alone(body: Any):
    if not is_template(encode_body(body)):
        assert filled(body) == body
        assert list(body_problems(body, {})) == []


def test_text_is_no_template_and_older_nodes_leave_templates_alone():
    def level(body: Any) -> int:
        job = spec(target=WebhookTarget(url="https://example.com/", body=body))
        check_spec(job)
        return level_of(job)

    assert level('{"$": "nobody"}') == 1
    assert level({"a": '{"$":'}) == 1
    assert level({"a": [{"$": "run_id"}]}) == 3


@given(
    st.recursive(
        st.just({"$": "run_id"}), lambda inner: st.lists(inner, max_size=3) | st.fixed_dictionaries({"k": inner})
    )
)
def test_every_one_is_found_however_deep(body: Any):
    assert b'"$"' not in encode_body(filled(body))
