"""docs/client.md names every method of the client, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from onthedot.client import AsyncClient, Client

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
OF_THE_OBJECT = {"url", "close", "aclose"}
"""What is no call of the API: the address, and what `with` does."""


def test_the_table_names_every_method_and_no_other():
    table = PAGE.partition("| Area | Methods |")[2].partition("\n\n")[0]
    named = re.findall(r"`(\w+)`", table)
    assert len(named) == len(set(named))
    for client in (Client, AsyncClient):
        assert set(named) == {name for name in dir(client) if not name.startswith("_")} - OF_THE_OBJECT
