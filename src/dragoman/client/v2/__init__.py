"""ACP version 2, a draft: its wire words into ours, and back; nothing above it knows of it."""
