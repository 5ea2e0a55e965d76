"""Full disks for those who may not mount one: the same tests, in a namespace of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.missing import missing
from tests.services.small_disk import in_own_namespace


@pytest.mark.timeout(240)
def test_full_disks_as_an_ordinary_user():
    done = in_own_namespace(Path(__file__).parent)
    if done.stderr.startswith("unshare:"):
        missing(f"only root may mount a disk here: {done.stderr}")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "2 passed" in done.stdout
