"""Ten thousand jobs, each with a name that is long, without a space, or written from right to left."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.pages.hostile import LONG, MARKS, RIGHT_TO_LEFT, WEBHOOK
from tests.pages.scene import PATIENCE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

MANY = 10_000
BATCH = 1000
NAMES = (LONG, RIGHT_TO_LEFT, "ש" * 300, *MARKS)
PAGES = ("/", "/jobs", "/jobs?sort=-name", "/jobs?status=paused", "/upcoming", "/runs", "/audit", "/operations")


@pytest.fixture(scope="module")
def crowded(company):
    """The company, once it has so many."""
    made: list[int] = []

    async def fill():
        for first in range(0, MANY if not made else 0, BATCH):
            jobs = [_job(number) for number in range(first, first + BATCH)]
            answer = await company.api.post("/v1/jobs/batch", json=jobs)
            assert answer.status_code in (200, 201), answer.text[:500]
            made.append(first)
        return company

    return fill


def _job(number: int) -> dict[str, object]:
    name = f"{NAMES[number % len(NAMES)]} {number}"
    tags = ["crowd", "t" * 100, "عاجل"][: 1 + number % 3]
    return {"key": f"crowd-{number}", "name": name, "schedule": {"cron": "0 3 1 1 *"}, "target": WEBHOOK, "tags": tags}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
async def test_ten_thousand_jobs(crowded, scene, width, scheme):
    company = await crowded()
    for path in PAGES:
        await scene.go(path)
        await scene.look()
    await scene.go("/jobs?tag=crowd")
    await scene.send("More jobs")
    await scene.look()
    await scene.page.get_by_role("searchbox").fill("crowd-9999")
    await expect(scene.page.locator("tr[id^=job-]")).to_have_count(1, timeout=PATIENCE)
    await scene.look()
    await _all_of_them(scene, "Pause")
    assert not (await company.get("/v1/jobs?tag=crowd&status=active&limit=1"))["items"]
    await _all_of_them(scene, "Resume")
    assert not (await company.get("/v1/jobs?tag=crowd&status=paused&limit=1"))["items"]
    assert not scene.wrong, "\n".join(scene.wrong)


async def _all_of_them(scene, verb: str) -> None:
    """All that match, with their number typed."""
    await scene.go("/jobs?tag=crowd")
    await scene.tick(scene.page.locator("#selection input[name=all]"))
    await scene.send(f"{verb}…")
    await scene.sees(f"{verb} 10,000 jobs?", "h1")
    await scene.look()
    if verb == "Pause":
        await scene.type("Reason", RIGHT_TO_LEFT)
    await scene.type("Type 10,000 to confirm", "10000")
    await scene.send(f"{verb} 10,000 jobs")
    await scene.sees("It is finished", ".verdict", within=300)
    await scene.look()
