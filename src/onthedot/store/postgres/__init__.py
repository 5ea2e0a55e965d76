"""The PostgreSQL store: any number of equal nodes."""
