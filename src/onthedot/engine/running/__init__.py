"""One attempt of a run: from its instant to its outcome."""
