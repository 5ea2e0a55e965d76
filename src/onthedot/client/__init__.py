"""Python clients for the HTTP API: AsyncClient for asyncio, Client for everything else."""

from __future__ import annotations

from onthedot.client.answers import BatchResult, ResultPage
from onthedot.client.async_client import AsyncClient
from onthedot.client.sync_client import Client
from onthedot.model.preview import Explanation, Preview
from onthedot.model.sync import SyncReport

__all__ = ["AsyncClient", "BatchResult", "Client", "Explanation", "Preview", "ResultPage", "SyncReport"]
