"""Jobs by queue: messages on topics of brokers create, change, pause, resume, run and delete jobs.

The store first, the acknowledgement after: a message that comes again changes nothing.
"""

from __future__ import annotations

from onthedot.intake.diagnosis import examine_intakes
from onthedot.intake.intakes import Intakes, check_intakes

__all__ = ["Intakes", "check_intakes", "examine_intakes"]
