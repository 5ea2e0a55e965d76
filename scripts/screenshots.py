"""Pictures of every page of a running demo (`make demo`): `make screenshots` (ADDRESS=http://127.0.0.1:8000,
FOLDER=docs/images). ALL=1 takes every page, light and dark, on a phone and on a desk, to be looked at.

Without it only the few that the documentation shows are taken.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

from onthedot.web import routes

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"]
HEIGHTS = {1440: 900, 390: 844}
SCHEMES = ("light", "dark")
QUALITY = 80
TALLEST = 1500

CHOSEN = {
    "overview": "/",
    "jobs": "/jobs?sort=name",
    "job": "/jobs/{job_id}",
    "run": "/runs/{run_id}",
}
"""What the documentation shows: on the desk, in the light; and the list of jobs on a phone in the dark."""
STATES = {
    "wall": "/?wall=true",
    "jobs-empty": "/jobs?q=no-such-job",
    "jobs-filters": "/jobs?failing=true&target=webhook",
    "job-day": "/jobs/{job_id}?day={day}",
    "job-gone": "/jobs/999999999",
    "page-unknown": "/nowhere",
    "query-unknown": "/jobs?colour=red",
    "runs-empty": "/runs?key=no-such-job",
    "dead-discarded": "/dead?discarded=true",
    "dead-empty": "/dead?job_id=999999999",
    "audit-empty": "/audit?actor=nobody-at-all",
}
"""Beside the pages themselves: lists without rows, errors, and what a choice opens."""
QUESTIONS = {
    "question-bulk": ("/jobs", "#selection input[name=all]", "#selection button[value=pause]"),
    "question-tag": ("/jobs", "#selection input[name=all]", "#selection button[value=tag]"),
    "question-redrive": ("/dead", "", ".page-head button >> nth=0"),
    "question-discard": ("/dead", "", ".page-head button >> nth=1"),
    "dialog-delete": ("/jobs/{job_id}", "#job-menu > summary", "#job-menu a >> text=Delete"),
    "dialog-retry": ("/runs/{run_id}", "", ".page-head a >> text=Edit and retry"),
    "keys": ("/jobs", "h1", ""),
}
"""What is asked before something is done: the page, what is clicked first, and what opens the question."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="http://127.0.0.1:8000", help="where the demo runs")
    parser.add_argument("--folder", type=Path, default=Path("docs/images"))
    parser.add_argument("--all", action="store_true", help="every page, both colours, both widths")
    parser.add_argument("--only", help="pages whose name begins so")
    options = parser.parse_args()
    program = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    if program is None:
        print("Chromium is not installed (Debian, Ubuntu: apt install chromium).", file=sys.stderr)
        return 1
    options.folder.mkdir(parents=True, exist_ok=True)
    values = _values(options.address)
    total = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for name, path, width, scheme in _wanted(all_of_them=options.all):
            if options.only and not name.startswith(options.only):
                continue
            context = browser.new_context(
                viewport={"width": width, "height": HEIGHTS[width]}, color_scheme=scheme, reduced_motion="reduce"
            )
            file = options.folder / f"{name}-{width}-{scheme}.{'png' if options.all else 'webp'}"
            page = context.new_page()
            page.goto(options.address + path.format(**values))
            page.wait_for_timeout(800)  # until what is live has arrived
            _open_question(page, name)
            _take(page, file, whole=options.all)
            context.close()
            total += file.stat().st_size
            print(f"{file} {file.stat().st_size // 1024} KB", flush=True)
        browser.close()
    print(f"{total // 1024} KB in all")
    return 0


def _wanted(*, all_of_them: bool) -> list[tuple[str, str, int, Any]]:
    """Name, path, width and colours."""
    pages = [each.operation.path for each in routes if each.operation.page and each.operation.method == "GET"]
    if not all_of_them:
        chosen: list[tuple[str, str, int, Any]] = [(name, path, 1440, "light") for name, path in CHOSEN.items()]
        return [*chosen, ("jobs", CHOSEN["jobs"], 390, "dark")]
    named = {_name(path): path for path in pages} | STATES | {name: each[0] for name, each in QUESTIONS.items()}
    return [(name, path, width, scheme) for name, path in named.items() for width in HEIGHTS for scheme in SCHEMES]


def _values(address: str) -> dict[str, str]:
    """A job that has something to show, and a run of it that failed."""

    def first(path: str) -> Any:
        with urllib.request.urlopen(address + path, timeout=10) as answer:
            return next(iter(json.load(answer)["items"]), {})

    job = first("/v1/jobs?q=returns-sync")
    run = first(f"/v1/runs?job_id={job['id']}&status=FAILED")
    destination = first("/v1/destinations")["destination"]
    scheme, _, host = destination.partition("//")
    return {
        "job_id": str(job["id"]),
        "run_id": run["id"],
        "version": "1",
        "slot": run["id"].split("-")[1],
        "day": run["scheduled_for"][:10],
        "node_id": first("/v1/nodes").get("id", "none"),
        "operation_id": str(first("/v1/operations").get("id", 1)),
        "destination": quote(destination, safe=""),
        "scheme": scheme,
        "host": host,
        "key_id": str(first("/v1/keys").get("id", 1)),
    }


def _open_question(page: Page, name: str) -> None:
    if name not in QUESTIONS:
        return
    _, before, opener = QUESTIONS[name]
    if before:
        page.click(before)
    if opener:
        page.click(opener)
    else:
        page.keyboard.press("?")
    page.wait_for_timeout(500)


def _take(page: Page, file: Path, *, whole: bool) -> None:
    if whole:  # long lists say the same again further down
        width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
        page.screenshot(
            path=file, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": min(TALLEST, height)}
        )
        return
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    file.write_bytes(base64.b64decode(taken["data"]))


def _name(path: str) -> str:
    return path.strip("/").replace("/", "-").replace("{", "").replace("}", "") or "overview"


if __name__ == "__main__":
    sys.exit(main())
