"""Jobs of other schedulers as a jobs file: one module for each source."""
