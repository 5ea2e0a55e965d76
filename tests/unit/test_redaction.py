"""What leaves the house has no secret in it: by name, by value, and by its looks."""

from __future__ import annotations

import pytest

from onthedot.model.redaction import Redactor, hidden_by_masks, named_secrets
from onthedot.model.secret_text import MASK, masked_url

KNOWN = 'hunter22!"x'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, 200 OK in 12 ms", None),
        ("GET https://example.com/a?x=1&y=2 -> 503 Service Unavailable", None),
        ("tokens are counted; the password is wrong", None),
        ("basic check of the bearer", None),
        (f"said {KNOWN} twice", f"said {MASK} twice"),
        ('{"a": "hunter22!\\"x"}', f'{{"a": "{MASK}"}}'),
        ("q=hunter22%21%22x&b=1", f"q={MASK}&b=1"),
        ("postgresql://me:pa55@db/x failed", f"postgresql://me:{MASK}@db/x failed"),
        ("curl -H 'Authorization: Bearer abc.DEF-123' -v", f"curl -H 'Authorization: {MASK}' -v"),
        ("authorization: Basic dXNlcjpwYXNz\nnext: line", f"authorization: {MASK}\nnext: line"),
        ("Set-Cookie: sid=a; Path=/; HttpOnly", f"Set-Cookie: {MASK}"),
        ("sent Bearer abcDEF123456 to it", f"sent Bearer {MASK} to it"),
        ("password=s3cr3t, user=me", f"password={MASK}, user=me"),
        ('{"api_key": "k-1", "n": 2}', f'{{"api_key": "{MASK}", "n": 2}}'),
        ("client_secret: 'a b c' end", f"client_secret: '{MASK}' end"),
        ("DB_PASSWORD => x1", f"DB_PASSWORD => {MASK}"),
        ("?access_token=xyz&page=2", f"?access_token={MASK}&page=2"),
        ("key otd_abcdefghijk_1 used", f"key {MASK} used"),
        ("AKIAABCDEFGHIJKLMNOP", MASK),
        ("jwt eyJhbGciOi.eyJzdWIi.c2ln end", f"jwt {MASK} end"),
        ("POST http://h/ping/ABCDEFGHIJKLMNOPQRST/start", f"POST http://h/ping/{MASK}/start"),
        ("https://hooks.slack.com/services/T0/B0/abc down", f"https://hooks.slack.com/services/{MASK} down"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nok", f"{MASK}\nok"),
        ("-----BEGIN PRIVATE KEY-----\nMII cut", MASK),
        ("run --password s3cr3t --verbose", f"run --password {MASK} --verbose"),
        ("run --db-password=s3cr3t -v", f"run --db-password={MASK} -v"),
        ("run --token --dry-run", None),
        ("run --name 'a b' --api-key 'k k'", f"run --name 'a b' --api-key '{MASK}'"),
        (r'body: "{\"password\": \"s3cr3t x\", \"n\": \"1\"}"', rf'body: "{{\"password\": \"{MASK}\", \"n\": \"1\"}}"'),
        ("<a><password>s3cr3t</password><n>1</n></a>", f"<a><password>{MASK}</password><n>1</n></a>"),
        ("curl -u me:s3cr3t http://h/", f"curl -u me:{MASK} http://h/"),
        ("git clone https://abcdef123456@h/x.git", f"git clone https://{MASK}@h/x.git"),
        ("postgresql://onthedot_role@db/x", None),
        ("SMTP_PASS=s3cr3t passphrase: p1", f"SMTP_PASS={MASK} passphrase: {MASK}"),
        ("compass=north", None),
        ("url=http://h/?token=s3cr3t&n=1", f"url=http://h/?token={MASK}&n=1"),
    ],
)
def test_free_text(text: str, shown: str | None):
    assert Redactor([KNOWN]).text(text) == (text if shown is None else shown)


def test_values_are_masked_by_name_however_deep_and_names_stay():
    value = {
        "user": "me",
        "password": "x",
        "n": 1,
        "auth": {"id": 7, "list": ["a", None, True]},
        "headers": [{"X-Api-Key": "k"}, {"accept": "*/*"}],
        "cookie": "",
    }
    assert Redactor().value(value) == {
        "user": "me",
        "password": MASK,
        "n": 1,
        "auth": {"id": MASK, "list": [MASK, None, True]},
        "headers": [{"X-Api-Key": MASK}, {"accept": "*/*"}],
        "cookie": "",
    }
    assert sorted(named_secrets(value)) == ["", "a", "k", "x"]


def test_pairs_that_are_lists_or_objects_with_a_name_are_masked():
    value = {
        "env": [{"name": "DB_PASSWORD", "value": "a"}, {"name": "LANG", "value": "C"}],
        "headers": [["Authorization", "b"], ["accept", "text/html"]],
        "argv": ["backup", "--password", "c", "--token", "--full", "--level", "3"],
    }
    assert Redactor().value(value) == {
        "env": [{"name": "DB_PASSWORD", "value": MASK}, {"name": "LANG", "value": "C"}],
        "headers": [["Authorization", MASK], ["accept", "text/html"]],
        "argv": ["backup", "--password", MASK, "--token", "--full", "--level", "3"],
    }
    assert list(named_secrets(value)) == ["a"]


def test_a_known_secret_is_found_as_a_form_writes_it():
    assert Redactor(["two words/x"]).text("a=two+words%2Fx&b=1") == f"a={MASK}&b=1"


def test_short_values_are_not_looked_for_in_texts():
    assert Redactor(["abc", ""]).text("abc abc") == "abc abc"
    assert Redactor(["abcd"]).text("abcd abc") == f"{MASK} abc"
    assert Redactor(["secret", "secret-long"]).text("secret-long") == MASK, "the longest first"


def test_what_masks_hide_is_found_by_comparing():
    url = "https://me:pw1@example.com/a?token=t0k&x=1#f"
    plain = {"url": url, "secrets": ["s1", "s2"], "headers": {"a": "b", "authorization": "z"}, "env": {"A": {"B": "c"}}}
    shown = {
        "url": masked_url(url),
        "secrets": [MASK, MASK],
        "headers": {"a": "b", "authorization": MASK},
        "env": MASK,
    }
    assert sorted(hidden_by_masks(plain, shown)) == ["c", "pw1", "s1", "s2", "t0k", "z"]


@pytest.mark.parametrize(
    "text",
    [
        "a" * 65_536,
        "a=" * 32_768,
        "://a:" * 13_000,
        "x " * 32_768,
        '"' * 65_536,
        "-" * 65_536,
        "--a " * 16_384,
        "<aa>" * 16_384,
        "a-" * 32_768,
        '\\"a\\":\\"' * 8_192,
        "-u a:" * 13_000,
        "https://" * 8_192,
    ],
)
def test_no_text_takes_long(text: str):
    import time

    began = time.process_time()
    Redactor(["some secret"]).text(text)
    assert time.process_time() - began < 1.5
