"""Invoices and payments: mostly quick, and strict about what does not add up."""

from __future__ import annotations

import random
import time


def reconcile(ledger: str = "main") -> dict[str, int]:
    """Compare payments with invoices; now and then they differ, and somebody has to look."""
    payments = random.randint(180, 420)
    print(f"{ledger}: {payments} payments read")
    time.sleep(random.uniform(0.1, 0.6))
    if random.random() < 0.08:
        raise ValueError(f"ledger {ledger}: 2 payments without an invoice (DE-20418, DE-20433)")
    print(f"{ledger}: every payment has an invoice")
    return {"payments": payments, "open": 0}


def send_invoices(country: str = "DE") -> dict[str, int]:
    sent = random.randint(3, 40)
    for number in range(1, sent + 1):
        print(f"invoice {country}-{20000 + number} queued")
    time.sleep(random.uniform(0.05, 0.2))
    return {"sent": sent}


def dunning(stage: int = 1) -> dict[str, int]:
    print(f"reminders of stage {stage}")
    time.sleep(random.uniform(0.2, 0.5))
    return {"reminders": random.randint(0, 12)}
