"""Dragoman as a proxy in a chain that another program conducts: it records, and applies rules."""
