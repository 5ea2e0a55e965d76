"""Writing results: batches, and what this node still owns."""
