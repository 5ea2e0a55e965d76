"""Decides from a history and the final ledger alone whether the promises were kept.

It knows nothing of how the history came about: the simulation and chaos on real processes write the same events.

events    what may stand in a history
ledger    what the store says in the end
verdict   all checks together
"""
