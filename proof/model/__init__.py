"""What a job's policy means, said a second time: nothing of `onthedot.plan` or `onthedot.timing` is used.

From the spec as it was written, what users did and what the receiver noted down it says what must come of a run:
equal both ways, so that nothing is too few, nothing too many and nothing recorded as another thing.

rules      a policy as numbers
attempts   how one attempt must have ended, and what must follow from it
catch_up   which of the slots that arrived fire, and which are given up

"""

from __future__ import annotations

from proof.model.attempts import Follows, follows, sender_saw
from proof.model.catch_up import Caught, caught_up
from proof.model.rules import Rules, duration, rules_of

__all__ = [
    "Caught",
    "Follows",
    "Rules",
    "caught_up",
    "duration",
    "follows",
    "rules_of",
    "sender_saw",
]
