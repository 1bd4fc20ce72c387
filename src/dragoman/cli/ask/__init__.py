"""How the person at the terminal is asked: permissions, forms, sign-in methods."""
