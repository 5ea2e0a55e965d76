"""Random input for everything that reads what strangers wrote."""
