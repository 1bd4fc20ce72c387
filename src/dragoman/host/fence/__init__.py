"""The fence around an agent: what it may reach, with a reason for each path.

`floor` says it as data that people can read, from `covered_paths` and what is protected in the
workspace; `fence` builds one for the programs of a client and removes what is left afterwards.
"""
