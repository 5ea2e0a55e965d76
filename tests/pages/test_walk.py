"""Every page, on both databases, at two widths, in both colours, with hostile texts: nothing may be wrong with it."""

from __future__ import annotations

import httpx
import pytest

from onthedot.model.key import ApiKeySpec
from tests.pages.actions import ACTIONS
from tests.pages.walk import actions_on, addresses, look_at, pages_of, places_of, unexpected

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_is_well(hostile_site, watched, width, scheme):
    _, base, hostile = hostile_site
    await _walk(await watched(width, scheme), base, places_of(hostile))


async def test_every_page_is_well_for_who_can_only_read(hostile_site, watched):
    app, base, hostile = hostile_site
    key = (await app.context.service.create_key(ApiKeySpec(name="<xss-probe>", scope="read"))).key
    seen = await watched(390)
    await seen.page.goto(f"{base}/login")
    await seen.page.get_by_label("API key").fill(key)
    await seen.page.get_by_role("button", name="Log in").click()
    await seen.page.wait_for_url(f"{base}/")
    seen.complaints.clear()
    await _walk(seen, base, places_of(hostile), may=(200, 403))


async def test_every_action_answers_in_words(hostile_site):
    """A form without its fields, as a mistaken program would send it: a page, and never an error of ours."""
    _, base, hostile = hostile_site
    wrong = []
    async with httpx.AsyncClient(base_url=base, headers={"origin": base}) as client:
        for path in pages_of("POST"):
            for address in addresses(path, places_of(hostile)):
                answer = await client.post(address, data={"unknown": "<xss-probe>"})
                kind = answer.headers.get("content-type", "")
                if answer.status_code >= 500 or (answer.status_code != 303 and not kind.startswith("text/html")):
                    wrong.append(f"{address}: {answer.status_code} {kind}")
                if "<xss-probe>" in answer.text:
                    wrong.append(f"{address}: markup of ours")
    assert not wrong, "\n".join(wrong)


async def _walk(seen, base, places, may=(200,)):
    wrong: list[str] = []
    walked = {sent for action in ACTIONS.values() for sent in action.sends}
    for path in pages_of():
        for address in addresses(path, places):
            found = await look_at(seen.page, f"{base}{address}")
            complaints = [each for each in unexpected(seen.complaints, address) if not ("403" in each and 403 in may)]
            unwalked = [f"no walk presses {each}" for each in await actions_on(seen.page) - walked]
            wrong.extend(f"{address}: {each}" for each in [*found, *complaints, *unwalked])
            seen.complaints.clear()
    assert not wrong, "\n".join(wrong)
