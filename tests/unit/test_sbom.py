"""The bill of materials lists every pinned package with its hashes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SBOM = runpy.run_path(str(ROOT / "scripts" / "sbom.py"))


def test_every_pinned_package_is_listed_with_its_hashes():
    pinned = (ROOT / "requirements" / "run.txt").read_text()
    bill = SBOM["document"]("1.2.3", pinned)
    assert [each["name"] for each in bill["components"]] == re.findall(r"^([\w.-]+)(?:\[.*\])?==", pinned, re.MULTILINE)
    assert sum(len(each["hashes"]) for each in bill["components"]) == pinned.count("--hash=sha256:")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/onthedot@1.2.3"
    assert set(bill["dependencies"][0]["dependsOn"]) == {each["bom-ref"] for each in bill["components"]}
