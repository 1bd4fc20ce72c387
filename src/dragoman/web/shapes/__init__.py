"""The types of requests and responses over HTTP: in camelCase, with times as ISO 8601 in UTC.

What comes from a session itself (events, entries, questions, options, content) is passed on as it
is stored, in its own words.
"""
