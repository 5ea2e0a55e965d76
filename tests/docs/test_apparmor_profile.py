"""docs/scripts.md shows the AppArmor profile of deploy/apparmor as it is."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_file():
    page = (ROOT / "docs" / "scripts.md").read_text()
    (shown,) = re.findall(r"^  sudo tee /etc/apparmor\.d/bwrap <<'END'\n(.*?)^  END$", page, re.MULTILINE | re.DOTALL)
    assert textwrap.dedent(shown) == (ROOT / "deploy" / "apparmor" / "bwrap").read_text()
    assert "`deploy/apparmor/bwrap`" in page
