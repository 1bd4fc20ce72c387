"""Reads the public interface from the sources, for the pages under docs/reference."""
