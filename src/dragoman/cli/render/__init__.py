"""How a turn is drawn: as plain text for pipes, and on a terminal for people."""
