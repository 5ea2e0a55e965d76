"""Query strings and the small readers of headers and addresses."""

from __future__ import annotations

import pytest

from onthedot.api.http.bodies import media_of
from onthedot.api.http.if_match import parse_if_match
from onthedot.api.http.query_params import choice, flag, instant, integer, read_query, text
from onthedot.api.origin import from_elsewhere, host_is_loopback
from onthedot.errors import Invalid
from tests.api.conftest import problem

PARAMS = (
    integer("limit", "", 1, 500, 50),
    text("q", "", longest=5),
    choice("status", "", ("on", "off")),
    instant("since", ""),
    flag("all", ""),
)


def test_what_is_not_asked_has_its_default():
    assert read_query(b"", PARAMS) == {"limit": 50, "q": None, "status": None, "since": None, "all": False}


def test_what_is_asked_is_read_as_what_it_is():
    asked = read_query(b"limit=7&q=%C3%BCb+r&status=off&since=1970-01-01T00:00:01%2B00:00&all=true", PARAMS)
    assert asked == {"limit": 7, "q": "üb r", "status": "off", "since": 1000, "all": True}


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        (b"limit=0", ["limit"]),
        (b"limit=501", ["limit"]),
        (b"limit=abc", ["limit"]),
        (b"limit=1e2", ["limit"]),
        (b"limit=-1", ["limit"]),
        (b"limit=", ["limit"]),
        (b"limit=%D9%A1", ["limit"]),  # an Arabic digit one
        (b"limit=99999999999999999999999", ["limit"]),
        (b"q=", ["q"]),
        (b"q=123456", ["q"]),
        (b"q=a%00", ["q"]),
        (b"status=ON", ["status"]),
        (b"since=yesterday", ["since"]),
        (b"since=2026-01-01", ["since"]),
        (b"since=2026-01-01T00:00:00", ["since"]),
        (b"all=yes", ["all"]),
        (b"limit=1&limit=2", ["limit"]),
        (b"colour=red", ["colour"]),
        (b"limit=0&q=&colour=red", ["limit", "q", "colour"]),
        (b"q=%ff", ["query"]),
        (b"\xff=1", ["query"]),
        (b"&".join(b"a%d=1" % n for n in range(60)), ["query"]),
    ],
)
def test_what_is_wrong_is_named(raw, wrong):
    with pytest.raises(Invalid) as refused:
        read_query(raw, PARAMS)
    assert [found.path for found in refused.value.problems] == wrong
    assert all(found.accepted for found in refused.value.problems)


def test_a_required_parameter_is_missed():
    import msgspec

    needed = msgspec.structs.replace(text("at", ""), required=True)
    with pytest.raises(Invalid, match="required parameter is missing"):
        read_query(b"", (needed,))


def test_an_endless_name_is_cut_in_the_answer():
    with pytest.raises(Invalid) as refused:
        read_query(b"a" * 5000 + b"=1", PARAMS)
    assert len(refused.value.problems[0].path) == 201


@pytest.mark.parametrize("address", ["/v1/jobs", "/v1/runs", "/v1/dead"])
async def test_lists_answer_weird_queries_with_422(api, address):
    for query in ("limit=abc", "limit=0", "limit=501", "cursor=junk", "cursor=%00", "q=%ff", "x=1", "limit=1&limit=1"):
        assert problem(await api.get(f"{address}?{query}"), 422)["errors"]


@pytest.mark.parametrize("header", [None, "*", " * "])
def test_no_if_match_or_a_star_is_any_version(header):
    assert parse_if_match(header) is None


@pytest.mark.parametrize(
    ("header", "versions"),
    [
        ('"3"', {3}),
        ("3", {3}),
        ('"3", "4"', {3, 4}),
        ('W/"3"', set()),
        ('"abc"', set()),
        ('"99999999999999999999"', set()),
        ('"-1"', set()),
        ('""', set()),
        ('"٣"', None),
    ],
)
def test_tags_name_versions(header, versions):
    if versions is None:
        with pytest.raises(Invalid):
            parse_if_match(header)
    else:
        assert parse_if_match(header) == versions


@pytest.mark.parametrize("header", ["", ",", "x", '"', '"3', '3"', '"3" "4"', "'3'", '"a b"', "-1", "*, *"])
def test_junk_in_if_match_is_said_to_be_junk(header):
    with pytest.raises(Invalid) as refused:
        parse_if_match(header)
    assert refused.value.problems[0].path == "If-Match"


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("", ("", "")),
        ("application/json", ("application/json", "")),
        ('Application/JSON; Charset="UTF-8"', ("application/json", "utf-8")),
        ("text/plain;x=y; charset=latin-1 ", ("text/plain", "latin-1")),
        (";;;=", ("", "")),
    ],
)
def test_media_types_are_read_leniently(header, found):
    assert media_of(header) == found


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "LOCALHOST", "127.0.0.1", "127.8.8.8:1", "[::1]", "[::1]:8000", "a.localhost"],
)
def test_names_of_this_machine(host):
    assert host_is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "10.0.0.1",
        "0.0.0.0",
        "",
        "[::1",
        "[::]",
        "evil@localhost:x:y",
        "２",
    ],
)
def test_names_of_others(host):
    assert not host_is_loopback(host)


@pytest.mark.parametrize(
    ("origin", "host", "site", "elsewhere"),
    [
        (None, "localhost:8000", None, False),  # a program
        ("http://localhost:8000", "localhost:8000", "same-origin", False),
        ("http://LOCALHOST:8000", "localhost:8000", None, False),
        ("http://evil.com", "localhost:8000", "cross-site", True),
        ("http://localhost:9000", "localhost:8000", "same-site", True),
        ("null", "localhost:8000", None, True),
        ("", "localhost:8000", None, True),
        ("http://[", "localhost:8000", None, True),
        ("http://localhost:8000", None, None, True),
        (None, "localhost:8000", "cross-site", True),
        (None, "localhost:8000", "none", False),
    ],
)
def test_where_a_request_comes_from(origin, host, site, elsewhere):
    assert from_elsewhere(origin, host, site) is elsewhere
