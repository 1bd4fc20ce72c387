"""What is checked of an agent, by subject."""
