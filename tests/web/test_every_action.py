"""Every form that the dashboard has is sent by a walk in a real browser (tests/pages/actions.py)."""

from __future__ import annotations

from tests.pages.actions import ACTIONS
from tests.pages.walk import pages_of


def test_every_action_is_walked():
    walked = {sent.partition(" ")[0] for action in ACTIONS.values() for sent in action.sends}
    missing = {*pages_of("POST")} - walked
    assert not missing, f"no walk in tests/pages/actions.py sends the forms of {sorted(missing)}"
    assert walked <= {*pages_of("POST")}
