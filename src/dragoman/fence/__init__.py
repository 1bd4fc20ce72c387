"""The fence: what a program and everything it starts may reach, held by the kernel.

A `FencePlan` says it in plain data. `namespaces` builds it around a process that is about to become
the program, `landlock` does what it can where namespaces are not to be had, and `first_process`
is process 1 of the program's own world. Most of this runs in the helpers between fork and exec,
so it imports little, and it knows nothing of agents, rules or sessions.
"""
