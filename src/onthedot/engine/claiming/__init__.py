"""From the store to the instant: when to claim, how much, and what waits for its time."""
