"""Refuse what belongs to one machine: paths of a home or a checkout, and the address of a package index.

Such a line works where it was written and nowhere else. Exit 1 with one line per finding.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["findings", "main"]

ROOT = Path(__file__).resolve().parent.parent
LOCKS_WITH_ADDRESSES = {"uv.lock", "poetry.lock", "pdm.lock", "package-lock.json", "yarn.lock", "pnpm-lock.yaml"}
# Written so that no pattern finds itself here.
PATTERNS = {
    "address of a package index": re.compile(
        r"(?:index-url|find-links|index_url|registry)[\"']?\s*[=: ]\s*[\"']?(?:https?|file):/"
        r"|https?://[^\s\"'<>]+[/+]simple(?:/|\b)"
        r"|\"resolved\"\s*:"
    ),
    "path of one machine": re.compile(r"(?<![\w.~])/(?:work|farm|root|Users/\w+|home/\w+)/[\w.]|\bsite-packages/\w"),
}


def tracked(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True).stdout
    return [root / name for name in listed.split("\0") if name]


def findings(root: Path) -> Iterator[str]:
    """One line per finding: file, line number, what is wrong, the line."""
    own = [place for place in (str(root), str(Path("~").expanduser())) if len(Path(place).parts) > 2]
    for path in tracked(root):
        name = path.relative_to(root)
        if path.name in LOCKS_WITH_ADDRESSES:
            yield f"{name}: a lock file that names the address of a package index"
            continue
        try:
            text = path.read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            wrong = [what for what, pattern in PATTERNS.items() if pattern.search(line)]
            if any(place in line for place in own):
                wrong.append("path of this machine")
            if wrong:
                yield f"{name}:{number}: {' and '.join(wrong)}: {line.strip()[:160]}"


def main() -> int:
    found = list(findings(ROOT))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
