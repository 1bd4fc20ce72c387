"""One module or package for each command, named after it."""
