"""Forms an agent asks the user to fill in."""
