"""The handlers: each takes the server and decoded values, and returns the response."""
