"""One end of a connection whose other end is examined, and a record of what went over it."""
