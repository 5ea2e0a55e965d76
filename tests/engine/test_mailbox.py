"""Mailboxes are bounded, keep the order, and drop nothing."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from onthedot.engine.mailbox import Mailbox, Signal


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_signal_merges_what_rings_before_it_is_heard():
    signal = Signal()
    signal.set()
    signal.set()
    await signal.wait()
    assert not signal.is_set()


async def test_a_signal_wakes_one_who_waits():
    signal = Signal()
    waiter = asyncio.ensure_future(signal.wait())
    await settle()
    assert not waiter.done()
    signal.set()
    await settle()
    assert waiter.done()


async def test_a_signal_survives_a_waiter_that_was_cancelled_at_the_same_moment():
    signal = Signal()
    waiter = asyncio.ensure_future(signal.wait())
    await settle()
    signal.set()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert signal.is_set()


async def test_messages_come_in_the_order_they_were_put():
    mailbox: Mailbox[int] = Mailbox(10)
    for number in range(3):
        await mailbox.put(number)
    assert await mailbox.take() == 0
    assert mailbox.take_all() == [1, 2]
    assert len(mailbox) == 0


async def test_a_full_mailbox_makes_the_sender_wait():
    mailbox: Mailbox[str] = Mailbox(1)
    assert mailbox.offer("a")
    assert not mailbox.offer("b")
    sender = asyncio.ensure_future(mailbox.put("b"))
    await settle()
    assert not sender.done()
    assert await mailbox.take() == "a"
    await settle()
    assert sender.done()
    assert await mailbox.take() == "b"


async def test_who_waits_goes_before_who_comes_later():
    mailbox: Mailbox[str] = Mailbox(1)
    await mailbox.put("first")
    senders = [asyncio.ensure_future(mailbox.put(name)) for name in ("second", "third")]
    await settle()
    assert not mailbox.offer("pushy")
    taken = []
    for _ in range(3):
        taken.append(await mailbox.take())
        await settle()
    assert taken == ["first", "second", "third"]
    assert all(sender.done() for sender in senders)


async def test_a_sender_that_gives_up_leaves_its_turn_to_the_next():
    mailbox: Mailbox[str] = Mailbox(1)
    await mailbox.put("in")
    gives_up = asyncio.ensure_future(mailbox.put("gives up"))
    patient = asyncio.ensure_future(mailbox.put("patient"))
    await settle()
    mailbox.take_all()
    gives_up.cancel()
    await settle()
    assert gives_up.cancelled()
    assert patient.done()
    assert mailbox.take_all() == ["patient"]


async def test_a_sender_cancelled_while_it_waits_puts_nothing():
    mailbox: Mailbox[str] = Mailbox(1)
    await mailbox.put("in")
    sender = asyncio.ensure_future(mailbox.put("never"))
    await settle()
    sender.cancel()
    await settle()
    assert mailbox.take_all() == ["in"]
    assert len(mailbox) == 0


async def test_take_waits_for_a_message():
    mailbox: Mailbox[str] = Mailbox(1)
    reader = asyncio.ensure_future(mailbox.take())
    await settle()
    assert not reader.done()
    await mailbox.put("here")
    assert await reader == "here"


async def test_take_all_takes_no_more_than_asked():
    mailbox: Mailbox[int] = Mailbox(10)
    for number in range(5):
        await mailbox.put(number)
    assert mailbox.take_all(2) == [0, 1]
    assert mailbox.take_all() == [2, 3, 4]


async def test_equal_signals_merge_and_others_do_not():
    mailbox: Mailbox[str] = Mailbox(2)
    for message in ("tick", "tick", "look", "tick"):
        mailbox.merge(message)
    assert mailbox.take_all() == ["tick", "look"]


async def test_what_makes_room_may_go_past_the_bound():
    mailbox: Mailbox[str] = Mailbox(1)
    await mailbox.put("in")
    mailbox.put_over("given back")
    assert mailbox.full
    assert mailbox.take_all() == ["in", "given back"]


async def test_many_senders_and_one_reader_lose_nothing():
    mailbox: Mailbox[int] = Mailbox(3)
    taken: list[int] = []

    async def read() -> None:
        while len(taken) < 100:
            taken.append(await mailbox.take())
            taken.extend(mailbox.take_all())
            assert len(mailbox) <= mailbox.size

    reader = asyncio.ensure_future(read())
    await asyncio.gather(*(mailbox.put(number) for number in range(100)))
    await reader
    assert sorted(taken) == list(range(100))


async def test_a_flood_of_a_full_mailbox_takes_no_memory():
    """Whoever sends waits, so what there is to send stays where it is: here 8 MB."""
    mailbox: Mailbox[bytes] = Mailbox(64)
    sent = 0

    async def flood() -> None:
        nonlocal sent
        for _ in range(20_000):
            await mailbox.put(bytes(100))
            sent += 1

    senders = [asyncio.ensure_future(flood()) for _ in range(4)]
    await settle()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for taken in range(1, 2001):
            assert len(await mailbox.take()) == 100
            await settle()
            assert len(mailbox) == mailbox.size
            assert sent == mailbox.size + taken
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        for sender in senders:
            sender.cancel()
        await asyncio.wait(senders)
    assert after - before < 100_000, "64 messages of 100 bytes and four senders that wait"


async def test_who_waits_for_enough_is_not_woken_before():
    mailbox: Mailbox[int] = Mailbox(10)
    waiting = asyncio.ensure_future(mailbox.until(lambda item: item == 3))
    await settle()
    mailbox.put_over(1)
    mailbox.put_over(2)
    await settle()
    assert not waiting.done()
    mailbox.put_over(3)
    await settle()
    assert waiting.done()
    assert mailbox.take_all() == [1, 2, 3]  # nothing was taken
    mailbox.put_over(4)
    assert await mailbox.take() == 4
