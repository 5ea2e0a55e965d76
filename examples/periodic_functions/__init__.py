"""Functions that the sample jobs call; see ../jobs.json."""
