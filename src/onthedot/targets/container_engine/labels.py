"""What containers are known by, whoever looks at the engine."""

from __future__ import annotations

__all__ = ["FOR_SCRIPT", "INSTALLATION", "KIND", "SECONDS", "run_labels"]

INSTALLATION = "onthedot.installation"
KIND = "onthedot.kind"
FOR_SCRIPT = "script"
"""The container is the sandbox of a script. Containers that are targets themselves have no such label."""
SECONDS = "onthedot.seconds"
"""How long it may run, counted from its start."""


def run_labels(installation: str, run_id: str, try_number: int, job: str, tenant: int) -> dict[str, str]:
    return {
        INSTALLATION: installation,
        "onthedot.run": run_id,
        "onthedot.try": str(try_number),
        "onthedot.job": job,
        "onthedot.tenant": str(tenant),
    }
