"""Sessions that this process runs: their agents, their queues, the recording of their events."""
