"""ACP version 1, translated to our types and back; nothing above this folder knows it."""
