"""ACP version 2, a draft, translated to our types and back; nothing above this folder knows it."""
