"""Chaos: real nodes on a real PostgreSQL behind a TCP fault proxy, a receiver that never deduplicates, seeded users
and a seeded nemesis. What happened is written down and decided by the same checker as the simulation.

run        one run from the first process to the verdict
nemesis    what goes wrong
points     kill -9 at each named point, many times, on both stores
"""
