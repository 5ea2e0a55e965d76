"""The bill of materials lists every pinned package with its hashes."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SBOM = runpy.run_path(str(ROOT / "scripts" / "sbom.py"))


@pytest.mark.parametrize("lock", ["run.txt", "extras.txt"])
def test_every_pinned_package_is_listed_with_its_hashes(lock):
    pinned = (ROOT / "requirements" / lock).read_text()
    bill = SBOM["document"]("1.2.3", pinned)
    assert [each["name"] for each in bill["components"]] == re.findall(r"^([\w.-]+)(?:\[.*\])?==", pinned, re.MULTILINE)
    assert sum(len(each["hashes"]) for each in bill["components"]) == pinned.count("--hash=sha256:")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/onthedot@1.2.3"
    assert set(bill["dependencies"][0]["dependsOn"]) == {each["bom-ref"] for each in bill["components"]}


def test_there_is_a_bill_of_each_installation(tmp_path):
    """The image is built of one of the two; `make audit` looks up the greater one, which has all of the other."""
    assert SBOM["main"](str(tmp_path)) == 0
    plain, extras = (
        {each["purl"] for each in json.loads(file.read_text())["components"]}
        for file in sorted(tmp_path.iterdir(), key=lambda file: len(file.name))
    )
    assert plain < extras
    assert "requirements/extras.txt" in (ROOT / "scripts" / "audit.sh").read_text()


def test_an_audit_that_can_not_look_up_anything_fails_and_says_so(tmp_path):
    """As without the network: nothing may be fetched, and nothing is in the cache."""
    offline = {**os.environ, "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path)}
    command = [str(ROOT / "scripts" / "audit.sh")]
    done = subprocess.run(command, env=offline, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3, done.stderr
    assert "make audit: NOT AUDITED. pip-audit could not be fetched." in done.stderr
    assert "pypi.org" in done.stderr
