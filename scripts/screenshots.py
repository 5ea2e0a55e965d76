"""Pictures of every page of a running demo (`make demo`): `make screenshots` (ADDRESS=http://127.0.0.1:8000,
FOLDER=docs/images). ALL=1 takes every page, light and dark, on a phone and on a desk, to be looked at.

Without it only the few that the documentation shows are taken.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from onthedot.web import routes

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"]
HEIGHTS = {1440: 900, 390: 844}
QUALITY = 82

CHOSEN = ("/", "/jobs", "/jobs/{job_id}", "/runs/{run_id}", "/jobs/{job_id}/edit", "/dead")
"""What the documentation shows: on the desk, in the light; and the list of jobs on a phone in the dark."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="http://127.0.0.1:8000", help="where the demo runs")
    parser.add_argument("--folder", type=Path, default=Path("docs/images"))
    parser.add_argument("--all", action="store_true", help="every page, both colours, both widths")
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
        for path, width, scheme in _wanted(all_of_them=options.all):
            context = browser.new_context(
                viewport={"width": width, "height": HEIGHTS[width]}, color_scheme=scheme, reduced_motion="reduce"
            )
            file = options.folder / f"{_name(path)}-{width}-{scheme}.jpg"
            _take(context.new_page(), options.address + path.format(**values), file)
            context.close()
            total += file.stat().st_size
            print(f"{file} {file.stat().st_size // 1024} KB")
        browser.close()
    print(f"{total // 1024} KB in all")
    return 0


def _wanted(*, all_of_them: bool) -> list[tuple[str, int, Any]]:
    pages = [each.operation.path for each in routes if each.operation.page and each.operation.method == "GET"]
    if all_of_them:
        return [(path, width, scheme) for path in pages for width in HEIGHTS for scheme in ("light", "dark")]
    chosen: list[tuple[str, int, Any]] = [(path, 1440, "light") for path in CHOSEN if path in pages]
    return [*chosen, ("/jobs", 390, "dark")]


def _values(address: str) -> dict[str, str]:
    """A job that has something to show, and a run of it that failed."""

    def first(path: str) -> Any:
        with urllib.request.urlopen(address + path, timeout=10) as answer:
            return json.load(answer)["items"][0]

    job = first("/v1/jobs?q=returns-sync")
    run = first(f"/v1/runs?job_id={job['id']}&status=FAILED")
    return {"job_id": str(job["id"]), "run_id": run["id"], "version": "1", "slot": run["id"].split("-")[1]}


def _take(page: Page, address: str, file: Path) -> None:
    """One screen of it, when what is live has arrived."""
    page.goto(address)
    page.wait_for_timeout(1500)
    page.screenshot(path=file, type="jpeg", quality=QUALITY)


def _name(path: str) -> str:
    return path.strip("/").replace("/", "-").replace("{", "").replace("}", "") or "overview"


if __name__ == "__main__":
    sys.exit(main())
