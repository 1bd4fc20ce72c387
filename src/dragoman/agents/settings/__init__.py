"""`settings.json`: its keys, what they hold, and edits of it."""
