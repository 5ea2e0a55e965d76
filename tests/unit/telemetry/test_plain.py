"""Text from outside on a terminal: shown, not obeyed."""

from __future__ import annotations

import io
import json
import logging
import unicodedata

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from onthedot.telemetry import Telemetry
from onthedot.telemetry.log import configure_logging, log_failures
from onthedot.telemetry.plain import plain, plain_json, plain_line

HOSTILE = [
    "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x90q\x9c", "\x07", "\x08", "\x7f", "\x00", "\u202e", "\u2066", "\u200f",
    "\u061c", "\u2028", "\ufeff", "\ud800", "\U000e0041", "\x0b", "\x0c", "\x85",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_terminal_would_obey_is_shown_instead(text: str):
    shown = plain(f"a{text}b")
    assert shown.isprintable()
    assert shown.startswith("a\\")
    assert shown.endswith("b")


def test_what_is_harmless_stays_as_it_is():
    text = "Ünï – 漢字 مرحبا 👍🏽 a\tb\nc\u00a0d"
    assert plain(text) is text


def test_a_carriage_return_writes_over_nothing():
    assert plain("50 %\r100 %\r\ndone\n") == "50 %\n100 %\ndone\n"
    assert plain_line("a\r\nb\tc\rd") == "a b c d"


@given(st.text(st.characters(codec=None)))
def test_nothing_harmful_is_left(text: str):
    for shown in (plain(text), plain_line(text)):
        kinds = {unicodedata.category(c) for c in shown if c not in "\n\t"}
        assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
        assert not {unicodedata.bidirectional(c) for c in shown} & {
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        }
    assert "\n" not in plain_line(text)


@given(st.text())
def test_json_reads_back_as_the_same(text: str):
    document = plain_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(document) == {text: [text]}
    assert not {unicodedata.category(c) for c in document} & {"Cc", "Zl", "Zp"}


def fail(text: str) -> None:
    raise ValueError(f"bad {text} value")


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("style", ["console", "json"])
def test_the_log_is_read_not_obeyed(hostile: str, style: str):
    stream, event = io.StringIO(), f"run.finished{hostile}"
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        configure_logging("INFO", style=style, stream=stream)
        log = structlog.stdlib.get_logger("onthedot")
        log.warning(event, error=hostile, job=f"a{hostile}b c", nested={"x": [hostile]})
        logging.getLogger("library").warning("says %s", hostile)
        try:
            fail(hostile)
        except ValueError:
            log.exception("failed")
    finally:
        logging.getLogger().handlers[:], logging.getLogger().level = before
        structlog.reset_defaults()
    written = stream.getvalue()
    assert "ValueError" in written
    assert hostile not in written
    assert all(line.isprintable() for line in written.split("\n"))


def test_an_embedding_program_s_log_gets_it_shown_too(caplog: pytest.LogCaptureFixture):
    wire = Telemetry()
    stop = log_failures(wire)
    wire.emit("run.retried", tenant=1, job_id=7, run_id="7-1", tries=1, error="to http://x/\x1b[2J\r\nforged")
    stop()
    assert "to http://x/\\x1b[2J forged" in caplog.text
