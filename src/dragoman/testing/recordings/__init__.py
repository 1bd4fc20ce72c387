"""Recordings of real conversations: written, read as events, played again."""
