"""The command line: one turn, a chat, and everything around them, on the same engine."""
