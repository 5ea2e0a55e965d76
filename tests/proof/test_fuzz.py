"""A few seconds of `make fuzz`, and that it would find what it looks for."""

from __future__ import annotations

import random

import pytest

from onthedot.api.server import protocol
from onthedot.model import webhook_url
from onthedot.store import paging
from proof.fuzz.mutate import inputs
from proof.fuzz.readers import READERS
from proof.fuzz.run import play, replay


@pytest.mark.parametrize("name", READERS)
def test_random_input_finds_nothing(name: str) -> None:
    blocks = list(play([name], 2000, seed=20, processes=1))
    assert sum(block.inputs for block in blocks) == 2000
    assert [str(find) for block in blocks for find in block.finds] == []
    assert sum(block.accepted for block in blocks) > 5, "some of it is right"


def test_the_same_seed_gives_the_same_inputs() -> None:
    reader = READERS["urls"]
    first, again = (list(inputs(random.Random("a"), reader.seeds, reader.words, 100)) for _ in range(2))
    assert first == again
    assert len(set(first)) > 90


def _finds(name: str, number: int = 6000) -> list[str]:
    return [find.why for block in play([name], number, seed=20, processes=1) for find in block.finds]


def test_a_cursor_that_can_not_be_stored_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "_storable", lambda part: True)
    assert any("can't be stored" in why for why in _finds("cursors"))


def test_a_trailer_among_the_headers_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_trailers(self: protocol.GuardedProtocol, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))
        if self.requests:  # type: ignore[attr-defined]
            self.requests[-1][2] = tuple(self.headers)  # type: ignore[attr-defined]

    monkeypatch.setattr(protocol.GuardedProtocol, "on_header", with_trailers)
    assert any("trailer" in why for why in _finds("heads"))


def test_an_address_that_is_taken_for_a_name_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_url, "literal", lambda text: None)
    assert any("judged as a name" in why for why in _finds("urls"))


FOUND = {
    "a position with NUL": ("cursors", b'["0123456789ab",17,"n\\u0000ame"]'),
    "a zone that is no ASCII": ("urls", b"http://[fe80::1%\xe2R\x80\xae25eth0]/"),
    "brackets and no host": ("urls", b"http://[::ffff:7f00:1]:99@/x"),
    "a name that ends in a bracket": ("jobs_files", b'{"jobs": [], "a]": 1}'),
    "a name that ends in a dot": ("jobs_files", b'{"jobs": [{"key": "a", "b.": 1}]}'),
}


@pytest.mark.parametrize("case", FOUND)
@pytest.mark.timeout(20)
def test_what_was_found_once_stays_mended(case: str) -> None:
    name, raw = FOUND[case]
    for cut in range(8):
        assert replay(name, raw, cut) == (False, None)
