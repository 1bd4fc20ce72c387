"""The store in SQLite, for one machine."""
