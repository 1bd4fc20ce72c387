"""What an agent may ask of us: files, terminals, permissions, questions to the user."""
