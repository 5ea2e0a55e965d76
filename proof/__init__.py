"""The proof: a deterministic simulation, a checker that decides from histories, and bugs planted to check the checker.

Not part of the product: nothing in `src` knows of it, nothing of it is in the wheel.
"""
