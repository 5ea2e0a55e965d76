"""Moving a store from one database to another, and settling a database that was restored from a copy of its past."""
