"""What of a target is not shown, and what the mask means when it comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.errors import Invalid
from onthedot.model.secret_text import MASK, is_secret_name, masked_url
from onthedot.model.secrets import kept, mask_problems, masked
from onthedot.model.targets import CommandTarget, FunctionTarget, ScriptTarget, WebhookTarget

HIDDEN = [
    "Authorization", "authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "x-apikey", "api_key",
    "X-Auth-Token", "X-Gitlab-Token", "token", "access_token", "client-secret", "X-Secret", "X-Password", "passwd",
    "X-Amz-Signature", "Ocp-Apim-Subscription-Key", "x-functions-key", "X-Auth", "x-credential", "X-AUTH-USER",
]  # fmt: skip
SHOWN = ["Content-Type", "Idempotency-Key", "X-Request-Id", "Accept", "X-Author", "monkey", "key", "X-Job-Key", "ETag"]


@pytest.mark.parametrize("name", HIDDEN)
def test_names_of_secrets(name: str):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", SHOWN)
def test_names_that_are_none(name: str):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example/x?y=1", "https://a.example/x?y=1"),
        ("https://a.example/x?token=t&y=1#f", f"https://a.example/x?token={MASK}&y=1#f"),
        ("https://a.example/?y=1&api%5Fkey=a=b", f"https://a.example/?y=1&api%5Fkey={MASK}"),
        ("https://a.example/?token=&token", "https://a.example/?token=&token"),
        ("https://user:pass@a.example/?q", f"https://user:{MASK}@a.example/?q"),
        ("postgres://app:p@ss@db/orders", f"postgres://app:{MASK}@db/orders"),
        ("redis://:pw@cache:6379/0", f"redis://:{MASK}@cache:6379/0"),
        ("https://user:@a.example/", "https://user:@a.example/"),
        ("https://a.example/@x:y@z", "https://a.example/@x:y@z"),
        ("https://a.example/#?token=x", "https://a.example/#?token=x"),
    ],
)
def test_urls(url: str, shown: str):
    assert masked_url(url) == shown


FULL = WebhookTarget(
    url="https://a.example/?token=t1&x=1&token=t2",
    headers={"Authorization": "Bearer s", "X-Plain": "p", "cookie": "c=1"},
    secret="whsec_" + "A" * 40,
)


def test_everything_that_is_secret_is_masked_and_nothing_else():
    assert masked(FULL) == WebhookTarget(
        url=f"https://a.example/?token={MASK}&x=1&token={MASK}",
        headers={"Authorization": MASK, "X-Plain": "p", "cookie": MASK},
        secret=MASK,
    )
    for other in (FunctionTarget(function="a:b"), CommandTarget(command="token"), WebhookTarget(url="http://a/")):
        assert masked(other) is other


def test_sent_back_unchanged_they_are_kept():
    assert kept(masked(FULL), FULL) == FULL
    changed = WebhookTarget(
        url="https://a.example/new?token=%E2%80%A2" + "%E2%80%A2" * 5, headers={"AUTHORIZATION": MASK}
    )
    assert kept(changed, FULL) == WebhookTarget(
        url="https://a.example/new?token=t1", headers={"AUTHORIZATION": "Bearer s"}
    )
    new = WebhookTarget(url="https://b.example/", headers={"Authorization": "Bearer new"})
    assert kept(new, FULL) is new


IN_VALUES = ScriptTarget(
    code="pass",
    env={"DATABASE_URL": "postgres://app:pw1@db/orders", "HOOK": "https://a.example/?token=t1", "MODE": "fast"},
    args=["--cache=redis://:pw2@cache/0", "redis://:pw2@cache/0", "curl https://a.example/?token=t1 -o f"],
)


def test_urls_in_values_and_arguments_are_shown_without_their_secrets():
    shown = ScriptTarget(
        code="pass",
        env={
            "DATABASE_URL": f"postgres://app:{MASK}@db/orders",
            "HOOK": f"https://a.example/?token={MASK}",
            "MODE": "fast",
        },
        args=[
            f"--cache=redis://:{MASK}@cache/0",
            f"redis://:{MASK}@cache/0",
            "curl https://a.example/?token=t1 -o f",
        ],
    )
    assert masked(IN_VALUES) == shown
    assert kept(shown, IN_VALUES) == IN_VALUES


def test_a_password_in_a_url_is_kept_for_its_own_place_only():
    moved = ScriptTarget(code="pass", env={"DATABASE_URL": f"postgres://app:{MASK}@db/invoices"})
    there = ScriptTarget(code="pass", env={"DATABASE_URL": "postgres://app:pw1@db/invoices"})
    assert kept(moved, IN_VALUES) == there
    for env, args, path in (
        ({"DATABASE_URL": f"postgres://app:{MASK}@evil/orders"}, [], "target.env.DATABASE_URL"),
        ({"DATABASE_URL": f"postgres://other:{MASK}@db/orders"}, [], "target.env.DATABASE_URL"),
        ({"ANOTHER": f"postgres://app:{MASK}@db/orders"}, [], "target.env.ANOTHER"),
        ({}, [f"redis://:{MASK}@other/0"], "target.args[0]"),
    ):
        with pytest.raises(Invalid) as refused:
            kept(ScriptTarget(code="pass", env=env, args=args), IN_VALUES)
        assert [problem.path for problem in refused.value.problems] == [path]


@pytest.mark.parametrize(
    ("new", "path"),
    [
        (WebhookTarget(url="https://a.example/", headers={"X-Token": MASK}), "target.headers.X-Token"),
        (WebhookTarget(url=f"https://a.example/?password={MASK}"), "target.url"),
        (WebhookTarget(url=f"https://evil.example/?token={MASK}"), "target.url"),
        (WebhookTarget(url="https://a.example/", secret=MASK), "target.secret"),
    ],
)
def test_the_mask_where_there_is_no_secret_is_wrong(new: WebhookTarget, path: str):
    old = WebhookTarget(url=FULL.url)
    assert [problem.path for problem in mask_problems(new)] == [path]
    with pytest.raises(Invalid) as caught:
        kept(new, old)
    assert [problem.path for problem in caught.value.problems] == [path]
    with pytest.raises(Invalid):
        kept(new, FunctionTarget(function="a:b"))


texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)
names = st.sampled_from([*HIDDEN, *SHOWN]) | texts.filter(bool)


@given(texts, st.dictionaries(names, texts), st.lists(st.tuples(names, texts)), st.none() | texts)
def test_what_is_shown_and_sent_back_is_what_there_was(path: str, headers, query, secret):
    url = f"https://a.example/{path}?" + "&".join(f"{name}={value}" for name, value in query)
    folded: dict[str, str] = {}
    for name, value in headers.items():
        folded.setdefault(name.lower(), value)
    target = WebhookTarget(url=url, headers=folded, secret=secret)
    assert kept(masked(target), target) == target


NEW, OLD = "a new secret of 24 characters", "an old secret of 24 characters"


@pytest.mark.parametrize(
    ("there", "sent", "kept_as"),
    [
        ({"secrets": [NEW, OLD]}, {"secrets": [MASK, MASK]}, {"secrets": [NEW, OLD]}),
        (
            {"secrets": [NEW, OLD]},
            {"secrets": ["a newer one of that length", MASK]},
            {"secrets": ["a newer one of that length", OLD]},
        ),
        ({"secret": OLD}, {"secrets": [NEW, MASK]}, {"secrets": [NEW, OLD]}),
        ({"secrets": [NEW, OLD]}, {"secret": MASK}, {"secret": NEW}),
        ({"secrets": [NEW]}, {"secret": MASK}, {"secret": NEW}),
    ],
)
def test_secrets_while_they_are_changed(there, sent, kept_as):
    old = WebhookTarget(url="https://example.com/", **there)
    assert NEW not in str(masked(old))
    assert OLD not in str(masked(old))
    assert kept(WebhookTarget(url="https://example.com/", **sent), old) == WebhookTarget(
        url="https://example.com/", **kept_as
    )


def test_a_mask_for_a_second_secret_that_there_never_was_is_wrong():
    old = WebhookTarget(url="https://example.com/")
    with pytest.raises(Invalid) as refused:
        kept(WebhookTarget(url="https://example.com/", secrets=[NEW, MASK]), old)
    assert [problem.path for problem in refused.value.problems] == ["target.secrets[1]"]
