"""Full disks for those who may not mount one: the same tests, in a namespace of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.services.small_disk import in_own_namespace


@pytest.mark.timeout(240)
def test_full_disks_as_an_ordinary_user():
    done = in_own_namespace(Path(__file__).parent)
    if done.stderr.startswith("unshare:"):
        if os.environ.get("CI"):
            pytest.fail(done.stderr)
        pytest.skip(f"only root may mount a disk here: {done.stderr}")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "2 passed" in done.stdout
