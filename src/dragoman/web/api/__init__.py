"""The handlers: each takes the server and decoded values, and returns what travels back."""
