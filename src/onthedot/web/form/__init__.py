"""The form for a job: made from the specs of jobs and targets, so that a new kind of target brings its form."""
