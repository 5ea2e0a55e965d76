"""Every action of the dashboard, as a person does it. `@does` says which forms and buttons a walk sends: one that sends
others, or not all of these, is wrong, and so is a form that no walk sends (tests/web/test_every_action.py)."""

from __future__ import annotations

from tests.pages.actions import dead_letters, installation, job_form, keys, one_job, runs, several_jobs
from tests.pages.actions.company import Company
from tests.pages.actions.registry import ACTIONS

__all__ = ["ACTIONS", "Company", "dead_letters", "installation", "job_form", "keys", "one_job", "runs", "several_jobs"]
