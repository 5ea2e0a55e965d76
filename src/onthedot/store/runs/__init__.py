"""Runs in the store: claim, begin, finish, cancel, and the lists of them."""
