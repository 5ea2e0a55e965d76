"""Incidents, and the messages about them until they are delivered."""
