"""Running sessions: who owns one, its queue, its readers, its recovery."""
