"""The HTTP server: its listener, its limits, and the guard around every request."""
