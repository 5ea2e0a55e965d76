"""`make demo`: a shop that sells tea, its jobs, two weeks of their history, and what goes on while you look."""
