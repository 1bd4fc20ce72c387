"""Known agents: how to start them, and how they deviate from the protocol."""
