"""What is done with several jobs at once."""

from __future__ import annotations

from tests.pages.actions.company import Company
from tests.pages.actions.registry import does
from tests.pages.hostile import MARKS
from tests.pages.scene import Scene


@does(*(f"/jobs/selected verb={verb}" for verb in ("pause", "resume", "run", "tag", "delete")))
async def several_jobs(scene: Scene, company: Company) -> None:
    jobs = [await company.job() for _ in range(4)]
    tag = f"several-{jobs[0]['id']}"

    async def select(query: str, places: tuple[int, ...]) -> None:
        await scene.go(f"/jobs?{query}")
        if not places:
            await scene.tick(scene.page.locator("#selection input[name=all]"))
        for place in places:
            await scene.tick(scene.page.locator(f"#job-{jobs[place]['id']} input[name=id]"))

    async def confirm(*, said: str) -> None:
        await scene.look()
        await scene.send(scene.page.locator("form.confirm .actions button"))
        await scene.sees(said, ".notice.good")
        await scene.sees("It is finished", ".verdict")  # it is live: nothing is reloaded
        await scene.look()

    await select(f"q={jobs[0]['key']}", (0,))
    await scene.send("Tag…")
    await scene.type("Add tags", f"{tag}, {MARKS[5]}")
    await confirm(said="Tagging 1 job")
    for job in jobs[1:]:
        await company.change(job, tags=[tag])
    await select(f"tag={tag}", (0, 1))
    await scene.send("Pause…")
    await scene.type("Reason", MARKS[0])
    await scene.choose("Paused until", "an hour has passed")
    await confirm(said="Pausing 2 jobs")
    states = [(await company.get(f"/v1/jobs/{job['id']}"))["state"] for job in jobs]
    assert states == ["paused", "paused", "active", "active"]
    await select(f"tag={tag}", ())
    await scene.send("Resume…")
    await scene.sees(tag, "form.confirm")
    await confirm(said="Resuming 4 jobs")
    await select(f"tag={tag}", ())
    await scene.send("Run now…")
    await confirm(said="Running 4 jobs")
    await select(f"tag={tag}", (2, 3))
    await scene.send("Delete…")
    await confirm(said="Deleting 2 jobs")
    left = (await company.get(f"/v1/jobs?tag={tag}"))["items"]
    assert {job["id"] for job in left} == {jobs[0]["id"], jobs[1]["id"]}
