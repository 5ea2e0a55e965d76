"""Bulk operations: one verb for many jobs, in portions that survive whoever works on them."""
