"""The demo agent: a script for `ScriptedAgent` that shows what an agent can do, with no model.

`python -m dragoman.testing.demo` serves it on standard input and output. What it offers is in
`agent`, where it keeps its sessions in `stored`, what it does with a prompt in `script`.
"""
