"""schemathesis reads our OpenAPI document and tries what it promises, on the real server.

Never a 5xx, never an answer that the document does not describe, never a wrong request that is taken for a good one.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from onthedot.api.app import ROUTES
from onthedot.api.openapi.document import openapi_document
from onthedot.clock import SystemClock
from onthedot.model.key import ApiKeySpec
from tests.api.conftest import listening, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
    unsupported_method,
]


# Making the requests takes most of it: a schema with all kinds of targets, for a thousand jobs.
pytestmark = pytest.mark.timeout(300)


class ServerThread(threading.Thread):
    """The whole application on a loop of its own: schemathesis calls from ordinary code."""

    def __init__(self, store: str) -> None:
        super().__init__(name="server", daemon=True)
        self._store = store
        self.ready = threading.Event()
        self.base = self.key = ""

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        async with serving(self._store, SystemClock()) as app:
            self.key = (await app.context.service.create_key(ApiKeySpec(name="all", scope="admin"))).key
            async with listening(app) as (host, port):
                self.base = f"http://{host}:{port}"
                self.ready.set()
                await self._ended.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self.join(20)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    store: Path = tmp_path_factory.mktemp("schemathesis") / "store.db"
    thread = ServerThread(f"sqlite:///{store}")
    thread.start()
    assert thread.ready.wait(30)
    yield thread
    thread.stop()


@schemathesis.serializer("application/x-ndjson")
def ndjson(_context: object, value: object) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value).encode()


document = openapi_document([endpoint.operation for endpoint in ROUTES], "test")
# a stream has no end, and a key that may revoke itself ends the test
schema = (
    schemathesis.openapi.from_dict(document)
    .exclude(path="/v1/events")
    .exclude(method="DELETE", path="/v1/keys/{key_id}")
)


def keeps_its_word(operation: str) -> Any:
    """A test function for each operation: pytest 9.2 gives all that schemathesis makes of one function the same id."""

    @schema.include(name=operation).parametrize()
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    def test_operation(case, running):
        answer = case.call(base_url=running.base, headers={"Authorization": f"Bearer {running.key}"}, timeout=45)
        # a wrong item of a batch is answered in its place, the batch as a whole is taken; too large is a refusal, too
        judged = case.path == "/v1/jobs/batch" or answer.status_code == 413
        checks = [check for check in CHECKS if not judged or check is not negative_data_rejection]
        case.validate_response(answer, checks=checks)

    return test_operation


OPERATIONS = [found.ok().label for found in schema.get_all_operations() if isinstance(found, Ok)]
assert len(OPERATIONS) >= 33, "operations that could not be read are not tested"
globals().update({f"test_{re.sub('[^A-Za-z0-9]+', '_', name).strip('_')}": keeps_its_word(name) for name in OPERATIONS})
