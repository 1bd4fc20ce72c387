"""An agent of this machine, offered to others: over WebSocket, Streamable HTTP, or plain pipes."""
