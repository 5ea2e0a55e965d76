"""Starting processes and reading what they print: shared by kinds."""
