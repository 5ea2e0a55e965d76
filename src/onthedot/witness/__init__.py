"""The witness: a process of its own that only reads, and says what should have fired and did not."""
