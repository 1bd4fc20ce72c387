"""A session is a fold: events in our own words, the state, and `reduce`.

Pure. Neutral between protocol versions: a dialect translates each into these words, and nothing
above it knows which version was spoken. Times and sequence numbers come in with the events.
"""
