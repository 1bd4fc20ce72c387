"""What is checked of a client, by subject: scenes that an agent plays for it."""
