"""Tokens and addresses of callbacks."""

from __future__ import annotations

import pytest

from onthedot.model.callback import callback_token, callback_url, run_and_token, try_named

RUN = "12-1763234567890"


def test_a_token_names_its_try():
    token = callback_token("secret", RUN, 3)
    assert try_named("secret", RUN, token) == 3
    assert callback_token("secret", RUN, 3) == token, "the same for every send of a try"


def test_it_is_good_for_one_try_of_one_run_of_one_installation():
    token = callback_token("secret", RUN, 3)
    assert try_named("other", RUN, token) is None
    assert try_named("secret", "12-1763234567891", token) is None
    assert try_named("secret", RUN, "4" + token[1:]) is None


@pytest.mark.parametrize("token", ["", "3", "3.", "0.abc", "-1.x", "3." + "A" * 32, "٣." + "A" * 32, "3." + "A" * 5000])
def test_what_is_no_token(token):
    assert try_named("secret", RUN, token) is None


def test_two_runs_and_tries_never_mean_the_same():
    """What is signed can't be cut differently: no digit of the run's id can be taken for one of the try."""
    made = {callback_token("s", run, n).partition(".")[2] for run in ("1-1", "1-11", "1-1-m1") for n in (1, 11, 111)}
    assert len(made) == 9


@pytest.mark.parametrize("base", ["http://127.0.0.1:8000", "https://jobs.example.com/otd"])
def test_a_url_tells_run_and_token(base):
    token = callback_token("secret", RUN, 1)
    url = callback_url(base, RUN, token)
    assert url == f"{base}/v1/runs/{RUN}/complete?token={token}"
    assert run_and_token(url) == (RUN, token)


@pytest.mark.parametrize("url", ["", "http://h/v1/runs/1-1", "http://h/v1/runs/1-1/complete", "http://h/?token=1.a"])
def test_what_is_no_callback_url(url):
    with pytest.raises(ValueError, match="not a callback URL"):
        run_and_token(url)
