"""A server on loopback with a certificate of its own, which says what it is told to say."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Served:
    """What is served: bodies by path, and redirects by path."""

    url: str
    certificate: Path
    bodies: dict[str, bytes] = field(default_factory=dict[str, bytes])
    redirects: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])


def make_certificate(folder: Path) -> Path:
    """A key and a certificate for 127.0.0.1 in one file."""
    path = folder / "server.pem"
    name = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", str(path), "-out", str(folder / "only.pem"))
    subprocess.run(
        ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name, *files),
        check=True,
        capture_output=True,
        timeout=60,
    )
    path.write_text(path.read_text() + (folder / "only.pem").read_text())
    return path


@contextmanager
def serving(certificate: Path) -> Generator[Served]:
    served = Served("", certificate)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            if (there := served.redirects.get(self.path)) is not None:
                self.send_response(302)
                self.send_header("Location", there)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = served.bodies.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    served.url = f"https://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
