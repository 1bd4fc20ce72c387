"""A session as the library has it: its turns, its prompts, its log of events."""
