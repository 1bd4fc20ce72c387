"""The same small client once for each column: it starts the agent, prompts it, counts updates."""
