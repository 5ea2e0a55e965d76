"""Every action, on both databases, at two widths, in both colours; on a desk without a mouse."""

from __future__ import annotations

import pytest

from tests.pages.actions import ACTIONS

# One of them starts the node again, which outlives its test.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600), pytest.mark.leaves_children]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", ACTIONS)
async def test_every_action(scene, company, name, width, scheme):
    action = ACTIONS[name]
    await action.walk(scene, company)
    assert not scene.wrong, "\n".join(scene.wrong)
    assert scene.sent == action.sends
