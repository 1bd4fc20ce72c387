"""ACP version 1: its wire words into ours, and back; nothing above this folder knows it."""
