"""Sessions that another process runs, seen from this one."""
