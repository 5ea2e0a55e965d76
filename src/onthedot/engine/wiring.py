"""The actors of one incarnation, built from right to left: each knows only what is to its right.

What they share is few and small, and calls nobody: the database's time, the lease, the due heap, when to look into the
store, and what the node owns.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from onthedot import telemetry
from onthedot.channels.channel import Channel
from onthedot.clock import Clock
from onthedot.engine.alerting.alert_sender import AlertSender
from onthedot.engine.alerting.alert_watcher import AlertWatcher
from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.claiming.claim_policy import ClaimPolicy
from onthedot.engine.claiming.claimer import Claimer
from onthedot.engine.claiming.dispatcher import Dispatcher
from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.claiming.label_watch import LabelWatch
from onthedot.engine.claiming.node_offers import NodeOffers
from onthedot.engine.claiming.shortage import Shortage
from onthedot.engine.claiming.timer import Timer
from onthedot.engine.claiming.waiting_watch import WaitingWatch
from onthedot.engine.look_times import LookTimes
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.change_news import CHANGED, is_news_of_others
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.duties import Duties
from onthedot.engine.membership.failure_detector import FailureDetector
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.heartbeat import Heartbeat
from onthedot.engine.membership.lateness import Lateness
from onthedot.engine.membership.lease import Lease
from onthedot.engine.membership.lease_end import LeaseEnd
from onthedot.engine.membership.operation_runner import OperationRunner
from onthedot.engine.membership.order_poller import OrderPoller
from onthedot.engine.membership.peer_beats import PeerBeats
from onthedot.engine.messages import DispatcherMessage, Fence, RecorderMessage
from onthedot.engine.ports import EngineStore, Offload
from onthedot.engine.recording.batch_window import BatchWindow
from onthedot.engine.recording.note_runner import NoteRunner
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.recording.recorder import Recorder
from onthedot.engine.running.begin_gate import BeginGate
from onthedot.engine.running.callbacks import CallbackUrls
from onthedot.engine.running.deadlines import Deadlines
from onthedot.engine.running.destinations import Destinations
from onthedot.engine.running.leftovers import Leftovers
from onthedot.engine.running.live_logs import LiveLogWriter
from onthedot.engine.running.run_context import RunContext
from onthedot.engine.running.run_log_files import LogFiles
from onthedot.engine.running.worker_shares import WorkerShares
from onthedot.engine.settings import EngineSettings
from onthedot.engine.tuning import beat_every, orders_valid
from onthedot.model.node import NodeLoad
from onthedot.store import Beat
from onthedot.targets import Targets
from onthedot.targets.contract import Handle

__all__ = ["Actor", "Wiring"]

DISPATCHER_MAILBOX = 64


class Actor(Protocol):
    async def step(self) -> None: ...


class Wiring:
    def __init__(
        self,
        node_id: str,
        *,
        store: EngineStore,
        targets: Targets,
        slots: Capacity,
        clock: Clock,
        rng: random.Random,
        settings: EngineSettings,
        offload: Offload,
        lateness: Lateness,
        health: StoreHealth,
        load: Callable[[], NodeLoad],
        lost: asyncio.Event,
        crashed: Callable[[BaseException], None],
        heard: Callable[[Beat], None] = lambda answer: None,
        channels: Mapping[str, Channel] = MappingProxyType({}),
    ) -> None:
        lease_seconds = settings.lease / 1000
        directory = settings.logs_base_directory
        to_dispatcher: Mailbox[DispatcherMessage] = Mailbox(DISPATCHER_MAILBOX)
        to_recorder: Mailbox[RecorderMessage] = Mailbox(max(settings.next_job_count, 100))

        def backoff() -> Backoff:
            return Backoff(rng)

        def waits(requires: str) -> None:
            destinations.waits(requires)
            shares.waits(requires)

        def heard_too(answer: Beat) -> None:
            self.callbacks.heard(answer.bindings)
            self.duties.groups_wait = answer.grouped
            self.claimer.draining = answer.draining
            heard(answer)

        self.time = time = DatabaseClock(clock)
        self.callbacks = callbacks = CallbackUrls(settings.callback_base)
        self.owned = owned = OwnedRuns()
        unrecorded: dict[Fence, Handle] = {}
        self.look_times = look_times = LookTimes(clock, adopts=bool(targets.surviving))
        self.destinations = destinations = Destinations(targets, clock, look_times, settings.destination_concurrency)
        self.shares = shares = WorkerShares(targets, look_times)
        self.offers = offers = NodeOffers(targets, settings.labels)
        self.lease = Lease(
            clock, lease_seconds, wake=look_times.wake, orders_valid=orders_valid(settings.lookahead / 1000)
        )
        self.watch = PeerBeats(lease_seconds)
        self.due_heap = DueHeap(look_times.wake)
        self.deadlines = Deadlines(clock)
        self.logs = LogFiles(directory, offload) if directory is not None else None
        self.live_logs = LiveLogWriter(store=store, clock=clock, health=health)

        self.note_runner = NoteRunner(store=store, clock=clock, health=health, backoff=backoff())
        self.recorder = Recorder(
            node_id,
            mailbox=to_recorder,
            store=store,
            clock=clock,
            owned=owned,
            unrecorded=unrecorded,
            health=health,
            backoff=backoff(),
            batch_window=BatchWindow(targets.in_process, self.due_heap, time),
            look_times=look_times,
            notes=self.note_runner.left,
            waits=waits,
        )
        self.gate = BeginGate(node_id, store=store, clock=clock, health=health, backoff=backoff(), size=slots.capacity)
        self.claimer = Claimer(
            node_id,
            mailbox=to_dispatcher,
            store=store,
            policy=ClaimPolicy(slots),
            clock=clock,
            time=time,
            owned=owned,
            look_times=look_times,
            lookahead_ms=settings.lookahead,
            rng=rng,
            health=health,
            backoff=backoff(),
            crashed=crashed,
            destinations=destinations,
            shares=shares,
            results=to_recorder,
            surviving=targets.surviving,
        )
        self.dispatcher = Dispatcher(
            mailbox=to_dispatcher,
            clock=clock,
            due_heap=self.due_heap,
            slots=slots,
            claimer=self.claimer,
            gate=self.gate,
            offers=offers,
            destinations=destinations,
            shares=shares,
            context=RunContext(
                clock=clock,
                time=time,
                lease=self.lease,
                deadlines=self.deadlines,
                targets=targets,
                recorder=to_recorder,
                owned=owned,
                unrecorded=unrecorded,
                lateness=lateness,
                logs=self.logs,
                live_logs=self.live_logs,
                crashed=crashed,
                lacks=Shortage(clock, look_times).of,
                callbacks=callbacks,
                settings=settings,
                rng=rng,
            ),
        )
        self.timer = Timer(
            clock=clock,
            time=time,
            due_heap=self.due_heap,
            lease=self.lease,
            look_times=look_times,
            dispatcher=self.dispatcher,
            rng=rng,
            poll=settings.poll_interval / 1000,
            granularity=settings.granularity / 1000,
        )
        self.lease_end = None  # nobody can take anything of who is alone
        if not settings.alone:
            self.lease_end = LeaseEnd(clock=clock, lease=self.lease, dispatcher=to_dispatcher)
        self.order_poller = OrderPoller(
            node_id,
            store=store,
            clock=clock,
            time=time,
            lease=self.lease,
            owned=owned,
            dispatcher=to_dispatcher,
            health=health,
            backoff=backoff(),
        )
        self.failure_detector = FailureDetector(
            node_id,
            store=store,
            clock=clock,
            watch=self.watch,
            health=health,
            backoff=backoff(),
            look_times=look_times,
        )
        self.heartbeat = Heartbeat(
            node_id,
            store=store,
            clock=clock,
            time=time,
            lease=self.lease,
            watch=self.watch,
            health=health,
            rng=rng,
            every=beat_every(lease_seconds),
            load=load,
            lost=lost,
            order_poller=self.order_poller,
            orphans=self.failure_detector.orphans,
            notes=self.note_runner.left,
            look_times=look_times,
            heard=heard_too,
        )
        self.duties = Duties(
            node_id,
            store=store,
            clock=clock,
            time=time,
            health=health,
            rng=rng,
            retention_ms=settings.retention,
            logs=self.logs,
            free=self.failure_detector.duty_free,
        )
        self.alert_watcher = AlertWatcher(
            store=store, clock=clock, rng=rng, health=health, holds_duty=lambda: self.duties.held
        )
        self.alert_senders = {
            name: AlertSender(
                node_id,
                name,
                channel,
                store=store,
                clock=clock,
                rng=rng,
                health=health,
                backoff=backoff(),
                link=settings.callback_base,
            )
            for name, channel in channels.items()
        }
        self.operation_runner = OperationRunner(
            node_id, store=store, clock=clock, rng=rng, health=health, backoff=backoff()
        )

        self.waiting_watch = None
        if destinations.pools or shares.pools:
            self.waiting_watch = WaitingWatch(
                waits=waits,
                offers=offers,
                sharing=shares.pools,
                store=store,
                clock=clock,
                rng=rng,
                health=health,
            )
        self.label_watch = None
        if offers.labels:
            self.label_watch = LabelWatch(
                offers=offers, store=store, clock=clock, rng=rng, health=health, look_times=look_times
            )
        self.leftovers = None
        if kinds := targets.swept_kinds():
            self.leftovers = Leftovers(kinds=kinds, store=store, clock=clock, rng=rng, health=health)

    @property
    def actors(self) -> dict[str, Actor]:
        actors: dict[str, Actor] = {
            "heartbeat": self.heartbeat,
            "recorder": self.recorder,
            "note_runner": self.note_runner,
            "gate": self.gate,
            "deadlines": self.deadlines,
            "dispatcher": self.dispatcher,
            "timer": self.timer,
            "order_poller": self.order_poller,
            "failure_detector": self.failure_detector,
            "duties": self.duties,
            "operation_runner": self.operation_runner,
            "alert_watcher": self.alert_watcher,
            **{f"alerts to {name}": sender for name, sender in self.alert_senders.items()},
            "live_logs": self.live_logs,
        }
        if self.logs is not None:
            actors["logs"] = self.logs
        if self.leftovers is not None:
            actors["leftovers"] = self.leftovers
        if self.waiting_watch is not None:
            actors["waiting_watch"] = self.waiting_watch
        if self.label_watch is not None:
            actors["label_watch"] = self.label_watch
        if self.lease_end is not None:
            actors["lease_end"] = self.lease_end
        return actors

    @property
    def mailboxes(self) -> dict[str, tuple[int, int]]:
        """By actor, how many messages wait for it, and how many may before their senders wait."""
        boxes: dict[str, Mailbox[Any]] = {
            "dispatcher": self.dispatcher.mailbox,
            "gate": self.gate.mailbox,
            "recorder": self.recorder.mailbox,
        }
        return {name: (len(box), box.size) for name, box in boxes.items()}

    def hint(self, topic: str) -> None:
        """A hint from the store; it may be lost, it may come twice."""
        if topic == "due":
            self.look_times.ask()
            if self.label_watch is not None:
                self.label_watch.hints.set()
        elif topic == "orders":
            self.order_poller.hints.set()
        elif topic == "operations":
            self.operation_runner.hints.set()
        elif topic == "alerts":
            for sender in self.alert_senders.values():
                sender.hints.set()
        elif is_news_of_others(topic):
            telemetry.emit(CHANGED)
