"""Dragoman beside the official SDKs, in one run: `python -m bench`, or `make bench`.

`rows` says what is measured, `measure` how, `prepare` builds what that needs, `report` writes
RESULTS.md. The clients being compared are in `clients`; `agent.c` is what they all talk to.
"""
