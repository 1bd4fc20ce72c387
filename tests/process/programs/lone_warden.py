"""A warden without a host, whose one helper hangs: `lone_warden.py whole|starved|busy`.

A starved warden has no free file descriptor. A busy warden's helper has a program, and prints
`ended` if it lives to see that program end.
"""

from __future__ import annotations

import os
import resource
import signal
import sys

from dragoman.process.zygote import Warden


def hang() -> None:
    signal.alarm(90)  # ends this program if the warden does not
    signal.pause()


def keep_a_program() -> None:
    if not os.fork():
        os.setsid()
        os.write(told, b"x")
        hang()
    os.wait()
    os.write(1, b"ended\n")
    os._exit(0)


condition = sys.argv[1]
ready, told = os.pipe()
# A busy machine must not have the keeper of a program killed before it can tell.
warden = Warden(host=0, keepers=3600) if condition == "busy" else Warden(host=0)
if not os.fork():
    if condition == "busy":
        keep_a_program()
    hang()
if condition == "busy":
    os.read(ready, 1)
if condition == "starved":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
warden.serve()
