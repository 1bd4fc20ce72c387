"""`dragoman` in a fork of the process that runs `warm.py`, which takes a tenth of the time.

Where that cannot be reached, as from an agent's process, which inherits no descriptors, it is the
real command.
"""

import _socket
import array
import json
import os
import sys

command, number, name = os.environ["WARM_COMMAND"].split(" ")
try:
    reachable = os.readlink(f"/proc/self/fd/{number}") == name
except OSError:
    reachable = False
argv = [command, *sys.argv[1:]]
if not reachable:
    os.execv(command, argv)
order = os.memfd_create("order")
text = json.dumps({"argv": argv, "env": dict(os.environ), "cwd": os.getcwd()})
os.write(order, text.encode())
os.lseek(order, 0, os.SEEK_SET)
ours, told = _socket.socketpair()
files = array.array("i", [order, told.fileno(), 0, 1, 2])
_socket.socket(fileno=int(number)).sendmsg(
    [b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)]
)
told.close()
with open(ours.detach()) as lines:
    lines.readline()
    code = int(lines.readline())
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
