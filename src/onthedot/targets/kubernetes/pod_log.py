"""What the main container of a pod prints, followed as it comes.

Streams are cut: by a restart of the API server, after hours, when a log is rotated. So each line is asked for with its
time; the next stream begins at the second of the last one seen, and what was there already is dropped. How the run ends
never depends on this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from onthedot.targets.kubernetes.api import ApiAway, ApiRefused, KubernetesApi
from onthedot.targets.kubernetes.objects import KubePod
from onthedot.targets.kubernetes.watch import SeenJob
from onthedot.targets.process.last_line import LastLine
from onthedot.targets.process.log_stamps import Instant, stamped
from onthedot.targets.process.output import OUTPUT_LIMIT

__all__ = ["PodLog", "last_line"]

TAILS, LONGEST_TAIL = (10, 100), 400
"""Lines at the end of the output in which the result is looked for: more of them if its line does not begin there,
since blank ones may follow it. 400 parts of 16 KB are fewer bytes than a line may have that is read here."""
SMALLEST_PART = 4096
"""Bytes. Container runtimes cut long lines, and a part counts as a line: into 16 KB, as far as we know."""
AGAIN_AFTER = 0.5
RESUMES_AFTER_END = 3
SILENCE = 15 * 60.0


class PodLog:
    """`run()` is a task of its own. `over` is set by who knows that the Job has ended."""

    def __init__(self, api: KubernetesApi, namespace: str, seen: SeenJob, log: Callable[[str], None]) -> None:
        self.over = asyncio.Event()
        self.started = asyncio.Event()  # set by who sees the pod
        self._api, self._namespace, self._seen, self._log = api, namespace, seen, log
        self._last: Instant | None = None
        self._at_last: set[bytes] = set()
        self._left = OUTPUT_LIMIT

    async def run(self) -> None:
        await self.started.wait()
        resumes = 0
        while self._left > 0 and resumes < RESUMES_AFTER_END:
            was_over = self.over.is_set()
            whole = self._seen.pod is not None and await self._follow(self._seen.pod)
            if whole and was_over:
                return
            try:
                async with asyncio.timeout(AGAIN_AFTER):
                    await self.over.wait()
            except TimeoutError:
                continue
            if whole:
                return
            resumes += 1

    async def _follow(self, pod: KubePod) -> bool:
        """Whether the API server has ended the stream, and has not just gone away."""
        query = {"follow": "true", "timestamps": "true", "container": pod.main.name}
        if self._last is not None:
            query["sinceTime"] = datetime.fromtimestamp(self._last[0], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        resumed, before = self._last, frozenset(self._at_last)
        try:
            async with self._api.stream(_path(self._namespace, pod), query, SILENCE) as lines:
                async for line in lines:
                    self._take(line, resumed, before)
                    if self._left <= 0:
                        self._log("\n… output truncated: it exceeds the size limit\n")
                        return True
        except (ApiAway, ApiRefused):
            return False
        return True

    def _take(self, line: bytes, resumed: Instant | None, before: frozenset[bytes]) -> None:
        at, text = stamped(line)
        if at is not None:
            if resumed is not None and (at < resumed or (at == resumed and text in before)):
                return
            if at != self._last:
                self._last, self._at_last = at, set()
            self._at_last.add(text)
        shown = text[: self._left]
        self._left -= len(text)
        self._log(shown.decode("utf-8", "replace"))


async def last_line(api: KubernetesApi, namespace: str, pod: KubePod) -> LastLine:
    """The last line that a pod which has ended has printed. Asked for by itself: the stream may be cut, and is not read
    to the end of a long output."""
    for tail in TAILS:
        line, most = await _last_line(api, namespace, pod, tail)
        if line.is_whole or most < tail:
            return line
    return (await _last_line(api, namespace, pod, LONGEST_TAIL))[0]


async def _last_line(api: KubernetesApi, namespace: str, pod: KubePod, tail: int) -> tuple[LastLine, int]:
    """And how many there were, at most."""
    line, lines_at_most = LastLine(lambda text: None), 0
    query = {"container": pod.main.name, "tailLines": str(tail)}
    async with api.stream(_path(namespace, pod), query, 30.0) as lines:
        async for text in lines:
            line.write(text.decode("utf-8", "replace"))
            lines_at_most += 1 + len(text) // SMALLEST_PART
    return line, lines_at_most


def _path(namespace: str, pod: KubePod) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{pod.metadata.name}/log"
