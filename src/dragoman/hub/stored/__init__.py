"""Sessions as the store has them: finding one, reading its events, deleting old ones."""
