"""Web Push: encrypted messages that a browser shows although no page is open."""
