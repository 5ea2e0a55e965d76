"""The SQLite store: one process, one file."""
