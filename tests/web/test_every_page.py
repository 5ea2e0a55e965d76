"""Every page once in a real browser, on a phone in the dark and on a desk in the light, with hostile texts everywhere.

`make test-pages` does the same on both databases, at all sizes and colours, and what people do on them.
"""

from __future__ import annotations

import pytest

from onthedot.clock import SystemClock
from tests.api.conftest import listening, serving
from tests.pages.hostile import make_hostile
from tests.pages.walk import addresses, look_at, pages_of, places_of, unexpected

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


async def test_every_page_is_well(sqlite_url, watched):
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as (host, port):
        places = places_of(await make_hostile(app.context.service, sqlite_url))
        wrong: list[str] = []
        for width, scheme in ((390, "dark"), (1440, "light")):
            seen = await watched(width, scheme)
            for path in pages_of():
                address = next(addresses(path, places))
                found = await look_at(seen.page, f"http://{host}:{port}{address}")
                found += unexpected(seen.complaints, address)
                wrong.extend(f"{address} at {width} px: {each}" for each in found)
                seen.complaints.clear()
        assert not wrong, "\n".join(wrong)
