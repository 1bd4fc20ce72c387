"""A warden without a host, whose one helper hangs: `lone_warden.py whole|starved`.

A starved one cannot open anything any more.
"""

from __future__ import annotations

import os
import resource
import signal
import sys

from dragoman.process.zygote import Warden

warden = Warden(host=0)
if not os.fork():
    signal.alarm(90)  # nothing is left for ever, should the warden not end it
    signal.pause()
if sys.argv[1] == "starved":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
warden.serve()
