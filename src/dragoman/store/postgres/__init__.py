"""The store in PostgreSQL, for several machines. Imported only when an address asks for it."""
