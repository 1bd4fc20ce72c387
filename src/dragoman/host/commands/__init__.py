"""What a command does, as far as its words tell."""
