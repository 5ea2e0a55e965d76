"""Jobs in the store: creating, reading, listing, changing."""
