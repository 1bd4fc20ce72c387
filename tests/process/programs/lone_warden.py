"""A warden without a host, whose one helper hangs: `lone_warden.py whole|starved`.

A starved warden has no free file descriptor.
"""

from __future__ import annotations

import os
import resource
import signal
import sys

from dragoman.process.zygote import Warden

warden = Warden(host=0)
if not os.fork():
    signal.alarm(90)  # ends this program if the warden does not
    signal.pause()
if sys.argv[1] == "starved":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
warden.serve()
