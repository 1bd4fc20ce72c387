"""`relay.py SOCKET FILE:AGENT`: joins standard input and output to an agent of `server.py`."""

import _socket  # the module around it takes as long to import as all else here together
import os
import select
import sys

path, name = sys.argv[1:]
agent = _socket.socket(_socket.AF_UNIX)
agent.connect(path)
agent.sendall(name.encode().ljust(64))
sources = [0, agent.fileno()]
while True:
    for source in select.select(sources, [], [])[0]:
        data = os.read(source, 65536)
        target = 1 if source else agent.fileno()
        if not data and source:
            sys.exit()
        if not data:
            agent.shutdown(_socket.SHUT_WR)
            sources.remove(0)
        while data:
            data = data[os.write(target, data) :]
