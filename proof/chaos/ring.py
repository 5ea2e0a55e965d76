"""What function and command jobs of the workload do: tell the receiver which run they are, and end as it answers.

`ring(url)` is called in a node's worker process; `python -m proof.chaos.ring` is the program of command jobs. Who sent
it they do not know; the database's diary does.
"""

from __future__ import annotations

import http.client
import json
import os
from urllib.parse import urlsplit

__all__ = ["FUNCTION", "ring"]

FUNCTION = "proof.chaos.ring:ring"


class Refused(Exception):
    """The receiver said no."""


def ring(url: str, mark: int = 0) -> int:
    """`mark` names the request that made the job; it is of no use here."""
    there = urlsplit(url)
    connection = http.client.HTTPConnection(there.hostname or "", there.port, timeout=30)
    try:
        connection.request(
            "POST",
            there.path,
            headers={
                "webhook-id": os.environ["ONTHEDOT_RUN_ID"],
                "x-onthedot-job": os.environ["ONTHEDOT_JOB_ID"],
                "x-onthedot-attempt": os.environ["ONTHEDOT_ATTEMPT"],
            },
        )
        status = connection.getresponse().status
    finally:
        connection.close()
    if status >= 300:
        raise Refused(f"HTTP {status}")
    return status


if __name__ == "__main__":
    ring(json.loads(os.environ["ONTHEDOT_PARAMS"])["url"])
