"""Timers: a job that POSTs to one URL once."""

from __future__ import annotations

import pytest

from onthedot.errors import IdempotencyMismatch, Invalid, NotFound
from onthedot.model.duration import Duration
from onthedot.model.targets import WebhookTarget
from onthedot.model.timer import TimerSpec
from tests.service.conftest import TENANT, URL


async def test_a_timer_counts_down_in_whole_seconds(service, fake_clock):
    timer = await service.create_timer(TENANT, TimerSpec(minutes=1, seconds=5, url=URL))
    assert timer.time_left == 65
    await fake_clock.advance(0.001)
    assert (await service.get_timer(TENANT, timer.id)).time_left == 65
    await fake_clock.advance(64)
    assert (await service.get_timer(TENANT, timer.id)).time_left == 1
    await fake_clock.advance(0.999)
    assert (await service.get_timer(TENANT, timer.id)).time_left == 0
    await fake_clock.advance(3600)
    assert (await service.get_timer(TENANT, timer.id)).time_left == 0


async def test_it_is_a_job(service):
    timer = await service.create_timer(TENANT, TimerSpec(hours=1, url=URL))
    job = await service.get_job(TENANT, timer.id)
    assert job.schedule.in_ == Duration.parse("1h")
    assert job.target == WebhookTarget(url=URL)


async def test_no_time_at_all_is_refused(service):
    with pytest.raises(Invalid) as caught:
        await service.create_timer(TENANT, TimerSpec(url=URL))
    assert caught.value.problems[0].path == "seconds"


async def test_more_than_a_century_is_refused(service):
    with pytest.raises(Invalid) as caught:
        await service.create_timer(TENANT, TimerSpec(hours=3_000_000_000, url=URL))
    assert caught.value.problems[0].path == "hours"


@pytest.mark.parametrize("url", ["", "example.com", "ftp://example.com", "http://", "/relative", "http://forbidden.x/"])
async def test_a_wrong_url_is_told_in_the_timer_s_own_words(service, url):
    with pytest.raises(Invalid) as caught:
        await service.create_timer(TENANT, TimerSpec(seconds=1, url=url))
    assert {problem.path for problem in caught.value.problems} == {"url"}


async def test_the_same_request_twice_makes_one_timer(service, fake_clock):
    first = await service.create_timer(TENANT, TimerSpec(seconds=10, url=URL), "once")
    await fake_clock.advance(4)
    again = await service.create_timer(TENANT, TimerSpec(seconds=10, url=URL), "once")
    assert (again.id, again.time_left) == (first.id, 6)
    with pytest.raises(IdempotencyMismatch):
        await service.create_timer(TENANT, TimerSpec(seconds=11, url=URL), "once")


async def test_an_unknown_timer_is_not_found(service):
    with pytest.raises(NotFound):
        await service.get_timer(TENANT, 4711)


async def test_a_soon_timer_wakes_the_nodes(service, hints):
    await service.create_timer(TENANT, TimerSpec(seconds=2, url=URL))
    assert hints == ["due"]
