"""Build the manual as a site: `make docs` writes site/, ready for any web server, or for a browser without one.

The pages are written to be read in the repository too, so they link to files beside docs/ (README, examples, sources).
Here the README becomes the first page, the other Markdown files become pages, and links to anything else are shown as
plain names. Afterwards every link and every anchor of the finished site is followed; one that leads nowhere fails the
build. (A strict build alone does not notice anchors.)
"""

from __future__ import annotations

import argparse
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
BESIDE = {"README.md": "index.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
"""Pages that are not in docs/, and what they are called in the site."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def stage(target: Path) -> None:
    """A copy of all pages in which the links fit the site."""
    for page in sorted((ROOT / "docs").rglob("*")):
        if page.is_file() and page != ROOT / "docs" / "README.md":
            copy(page, target / page.relative_to(ROOT / "docs"), target)
    for name, called in BESIDE.items():
        copy(ROOT / name, target / called, target)


def copy(page: Path, to: Path, top: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if page.suffix != ".md":
        shutil.copyfile(page, to)
        return
    parts = re.split(r"(^```.*?^```\s*$)", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    to.write_text("".join(part if part.startswith("```") else relink(part, page, to, top) for part in parts))


def relink(text: str, page: Path, to: Path, top: Path) -> str:
    def link(found: re.Match[str]) -> str:
        image, words, address = found.groups()
        path, _, heading = address.partition("#")
        if urlsplit(address).scheme or not path:
            return found[0]
        leads_to = (page.parent / unquote(path)).resolve()
        place = staged(leads_to, top)
        if place is None:
            return words if words.startswith("`") else f"`{leads_to.relative_to(ROOT)}`"
        return f"{image}[{words}]({os.path.relpath(place, to.parent)}{'#' * bool(heading)}{heading})"

    return LINK.sub(link, text)


def staged(path: Path, top: Path) -> Path | None:
    """Where a file of the repository is in the site; None if it is not part of it."""
    if path == ROOT / "docs" / "README.md":
        return top / "index.md"
    if path.parent == ROOT and path.name in BESIDE:
        return top / BESIDE[path.name]
    if path.is_file() and path.is_relative_to(ROOT / "docs"):
        return top / path.relative_to(ROOT / "docs")
    return None


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := named.get(name)))
        for name in ("href", "src"):
            if value := named.get(name):
                self.links.append(value)


def dead_links(site: Path) -> Iterator[str]:
    pages = {path.resolve(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":  # served at any depth: its links are absolute
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{path.relative_to(site)}: {link} leads nowhere"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.relative_to(site)}: {link}: there is no such heading"


def listed(config: str) -> set[str]:
    return set(re.findall(r"[\w./-]+\.md\b", config))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--site", type=Path, default=ROOT / "site", help="where the site is written")
    site = options.parse_args().site.resolve()
    config = (ROOT / "mkdocs.yml").read_text()
    with tempfile.TemporaryDirectory() as made:
        pages = Path(made) / "docs"
        stage(pages)
        missing = {str(page.relative_to(pages)) for page in pages.rglob("*.md")} - listed(config)
        if forgotten := sorted(name for name in missing if not name.startswith("adr/")):
            print(f"not in the navigation of mkdocs.yml: {', '.join(forgotten)}", file=sys.stderr)
            return 1
        (Path(made) / "mkdocs.yml").write_text(config)
        built = subprocess.run([Path(sys.executable).with_name("zensical"), "build", "--strict"], cwd=made, check=False)
        if built.returncode:
            return built.returncode
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(Path(made) / "site", site)
    wrong = list(dead_links(site))
    print(
        "\n".join(wrong[:50])
        or f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere: {site}/index.html"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
