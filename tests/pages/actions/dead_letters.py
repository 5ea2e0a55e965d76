"""What is done with runs that failed for good."""

from __future__ import annotations

from tests.pages.actions.company import Company
from tests.pages.actions.registry import does
from tests.pages.hostile import MARKS
from tests.pages.scene import Scene


@does("/dead/redrive-one", "/dead/redrive")
async def redrive_one_a_selection_and_a_group(scene: Scene, company: Company) -> None:
    job = await company.job_with_past()
    mine = f"/dead?job_id={job['id']}"
    await scene.go(mine)
    await scene.look()
    await scene.send(scene.page.locator("tr[id^=letter-] button").first)
    await scene.sees("this is the new run", ".notice.good")
    await scene.look()
    await scene.go(mine)
    await scene.tick(scene.page.locator("input[name=id]").first)
    await scene.send("Redrive…", "#selection")
    await scene.look()
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Redriving 1 dead letter", ".notice.good")
    await scene.look()
    job = await company.job_with_past()
    await scene.go(f"/dead?job_id={job['id']}")
    await scene.send("Redrive…", "table.groups")
    await scene.type("Maximum per second", "5")
    await scene.look()
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Redriving 1 dead letter", ".notice.good")
    await scene.go(f"/dead?job_id={job['id']}")
    await scene.send("Redrive all…")
    await scene.look()
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Redriving", ".notice.good")


@does("/dead/discard")
async def discard_with_a_note(scene: Scene, company: Company) -> None:
    job = await company.job_with_past()
    mine = f"/dead?job_id={job['id']}"
    await scene.go(mine)
    await scene.tick(scene.page.locator("input[name=id]").first)
    await scene.send("Discard…", "#selection")
    await scene.type("Note", MARKS[0])
    await scene.look()
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Discarded 1 dead letter", ".notice.good")
    await scene.send("Discard…", "table.groups")
    await scene.type("Note", MARKS[3])
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Discarding 1 dead letter", ".notice.good")
    await scene.sees("It is finished", ".verdict")
    await scene.go(f"{mine}&discarded=true")
    await scene.sees(MARKS[0], "#live-part")
    await scene.sees(MARKS[3], "#live-part")
    await scene.look()
    await scene.go(mine)
    await scene.sees("No dead letters")
    await scene.look()
