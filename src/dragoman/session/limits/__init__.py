"""How much of something there may be: of what terminals print, and of what a session uses."""
