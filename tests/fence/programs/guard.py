"""Makes a playground and runs attempts in it: `guard.py PLAYGROUND KIND [NAME …]`.

Prints what the attempts print. With the kind `open` there is no fence: that is the control of
`fenced`, and of `landlock`, a fence without namespaces. Around the program there is everything that
it could attack: a process of the same user, sockets, keys. `none` and `listed` are fences with such
a network, in which `network_escapes.py` is run instead, and `landlock-none` is one without
namespaces; `online` is their control.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

PLACE, KIND, *NAMES = sys.argv[1:]
P = Path(PLACE)
HOME = P / "home"
os.environ.update(
    HOME=str(HOME),
    DRAGOMAN_HOME=str(P / "data"),
    DRAGOMAN_SETTINGS=str(HOME / ".config/dragoman/settings.json"),
    NETWORK={"none": "none", "listed": "listed"}.get(KIND.removeprefix("landlock-"), "all"),
    SSH_AUTH_SOCK=str(P / "sockets/ssh"),
    DBUS_SESSION_BUS_ADDRESS=f"unix:path={P}/sockets/bus",
)
for variable in ("GIT_DIR", "GIT_WORK_TREE", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
    os.environ.pop(variable, None)

from dragoman.host.fence import fence as fence_module  # noqa: E402
from dragoman.host.fence.fence import Fence, sockets_of_others  # noqa: E402
from dragoman.host.fence.fence_terms import FenceMode, NetworkTerms  # noqa: E402
from dragoman.host.fence.floor import Floor, Own, floor_for  # noqa: E402
from dragoman.host.fence.mount_table import mount_table  # noqa: E402
from dragoman.process.child import Process  # noqa: E402
from dragoman.process.spawn import spawn  # noqa: E402

PROGRAMS = [path for path in Path(__file__).parent.glob("*.py") if path.name != "guard.py"]
PROGRAM = "escapes.py" if KIND in ("fenced", "landlock", "open") else "network_escapes.py"
ROOM = ctypes.create_string_buffer(64)
"""Memory of ours that nobody else needs."""
libc = ctypes.CDLL(None, use_errno=True)
SHARED_MEMORY_KEYS = 0x44000000
"""The first of the numbers of shared memory; other guards may run at the same time."""


def write(path: Path, text: str = "as it was\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_files() -> None:
    for name in ("file", "to-delete", "to-move", "upper/x", "work/x"):
        write(P / "outside" / name)
    (P / "outside/work/x").unlink()
    for name in (".ssh/id", ".aws/credentials", ".mozilla/cookies", ".netrc", ".codex/auth.json"):
        write(HOME / name, "secret\n")
    write(HOME / ".config/dragoman/settings.json", '{"$schema": "secret"}')
    write(HOME / ".bashrc")
    write(HOME / ".local/bin/tool")
    write(P / "data/sessions.db", "secret\n")
    write(P / "more/inner/keys/id", "secret\n")
    make_workspace()


def make_workspace() -> None:
    ws = P / "ws"
    for name in (
        ".envrc",
        ".vscode/settings.json",
        ".claude/settings.json",
        ".github/workflows/ci.yml",
        "packages/one/.mcp.json",
    ):
        write(ws / name)
    (ws / "link-out").symlink_to(P / "outside")
    git("init", "-q", str(ws))
    write(ws / ".git/hooks/pre-commit")
    write(ws / ".git/hooks/to-delete")
    for name in ("HEAD", "config", "hooks/x"):
        write(ws / ".git/modules/sub" / name)
    git("init", "-q", str(P / "main"))
    write(P / "main/.git/hooks/x")
    settings = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    git("-C", str(P / "main"), *settings, "commit", "-q", "--allow-empty", "-m", "x")
    git("-C", str(P / "main"), "worktree", "add", "-q", str(P / "worktree"))


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def listening(address: str) -> Generator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        if not address.startswith("\0"):
            Path(address).parent.mkdir(parents=True, exist_ok=True)
        server.bind(address)
        server.listen(64)
        yield
    if address.startswith("/"):
        os.unlink(address)


@contextmanager
def servers() -> Generator[str]:
    """Of the host: their ports, and an address of this machine."""
    with (
        socket.create_server(("0.0.0.0", 0)) as tcp,
        socket.create_server(("127.0.0.1", 0)) as listed,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (tcp, udp, listed)]
        elsewhere = f"Location: http://127.0.0.1:{ports[0]}/\r\n"
        head = f"HTTP/1.1 302 Found\r\n{elsewhere}Content-Length: 0\r\n\r\n".encode()
        for work in (
            lambda: answer_all(tcp, b"the server of the host"),
            lambda: answer_all(listed, head),
            lambda: answer_datagrams(udp),
        ):
            threading.Thread(target=work, daemon=True).start()
        yield " ".join((*map(str, ports), own_address()))


def answer_all(server: socket.socket, answer: bytes) -> None:
    with suppress(OSError):  # it is closed in the end
        while True:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(4096)
                connection.sendall(answer)


def answer_datagrams(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            _, sender = server.recvfrom(4096)
            server.sendto(b"the server of the host", sender)


def own_address() -> str:
    """No packet is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        try:
            sender.connect(("192.0.2.1", 9))
        except OSError:
            return "-"
        return str(sender.getsockname()[0])


@contextmanager
def victim() -> Generator[int]:
    program = (
        "import os, signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN); "
        f"os.dup2(os.open({str(P / 'outside/file')!r}, os.O_WRONLY), 9); "
        "print('up', flush=True); signal.pause()"
    )
    with running(program, {"VICTIM": "yes"}) as pid:
        yield pid


@contextmanager
def running(program: str, environment: dict[str, str] | None = None) -> Generator[int]:
    """This program of Python's, once it has printed something or ended."""
    command = [sys.executable, "-I", "-S", "-c", program]
    process = subprocess.Popen(command, env=environment, cwd=P, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()


@contextmanager
def elsewhere() -> Generator[None]:
    """A program in a network of its own, if that can be had, with sockets that have names."""
    flags = 0x40000000 | (0x10000000 if os.geteuid() else 0)
    program = (
        "import ctypes, signal, socket, sys; "
        f"ctypes.CDLL(None).unshare({flags}) and sys.exit(); "
        f"server = socket.socket(socket.AF_UNIX); server.bind({str(P / 'elsewhere.sock')!r}); "
        "server.listen(); datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
        f"datagrams.bind({str(P / 'datagrams.sock')!r}); print('up', flush=True); signal.pause()"
    )
    with running(program):
        yield


@contextmanager
def shared_memory() -> Generator[None]:
    """And what else goes by such a number: a queue of messages, a semaphore."""
    number = SHARED_MEMORY_KEYS + os.getpid()
    identifier = libc.shmget(number, 64, 0o1600)
    queue, semaphore = libc.msgget(number, 0o1600), libc.semget(number, 1, 0o1600)
    file = Path(f"/dev/shm/dragoman-test-{os.getpid()}")
    file.write_text("x")
    try:
        yield
    finally:
        libc.shmctl(identifier, 0, None)
        libc.msgctl(queue, 0, None)
        libc.semctl(semaphore, 0, 0)
        file.unlink()


@contextmanager
def keys() -> Generator[None]:
    """In a session keyring of our own, and in that of the user."""
    is_usual = os.uname().machine == "x86_64"
    control, add = (250, 248) if is_usual else (219, 217)
    libc.syscall(control, 1, None)
    name = b"dragoman-test-%d" % os.getpid()
    held = [
        (libc.syscall(add, b"user", name, b"secret", 6, keyring), keyring) for keyring in (-3, -4)
    ]
    try:
        yield
    finally:
        for key, keyring in held:
            libc.syscall(control, 9, key, keyring)


@contextmanager
def own_terminal() -> Generator[str]:
    """One that is ours to type into, and the name of another."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.setsid()
    pairs = [os.openpty() for _ in range(2)]
    ours, another = (os.ttyname(theirs) for _, theirs in pairs)
    os.close(os.open(ours, os.O_RDWR))  # the first that is opened becomes ours
    yield another
    for descriptor in (number for pair in pairs for number in pair):
        os.close(descriptor)


@asynccontextmanager
async def helpers() -> AsyncGenerator[str]:
    """The processes that Dragoman needs for a program that runs."""
    nothing = os.open(os.devnull, os.O_RDWR)
    process = await spawn(
        ["sleep", "1000"],
        env=dict(os.environ),
        cwd="/",
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
    )
    os.close(nothing)
    try:
        yield " ".join(map(str, above(process)))
    finally:
        await process.stop(exit_within=0, term_within=0)


def above(process: Process) -> list[int]:
    found: list[int] = []
    pid = process.pid
    while (pid := parent_of(pid)) not in (os.getpid(), 0, 1):
        found.insert(0, pid)
    assert found
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def floor(roots: Sequence[str]) -> Floor:
    return floor_for(
        roots,
        own=Own((str(HOME / ".agent"),), "the agent's own"),
        others=[
            (str(HOME / ".codex"), "the credentials of another agent"),
            (str(P / "more/inner/keys"), "credentials in a folder that may be written"),
        ],
        write=[str(P / "more")],
        sockets=sockets_of_others(),
        mounts=mount_table(),
    )


async def run(command: list[str]) -> None:
    async with helpers() as numbers:
        os.environ["HELPERS"] = numbers
        if KIND in ("open", "online"):
            await open_to_all(command)
        else:
            await fenced(command)


async def open_to_all(command: list[str]) -> None:
    inherited = os.open(P / "outside/file", os.O_WRONLY)
    process = await asyncio.create_subprocess_exec(*command, cwd=P / "ws", pass_fds=[inherited])
    assert await process.wait() == 0


async def fenced(command: list[str]) -> None:
    network: NetworkTerms = "none" if KIND.endswith("none") else "all"
    if KIND == "listed":
        network = (f"127.0.0.1:{os.environ['SERVERS'].split()[2]}", "listed.example")
    mode: FenceMode = "ask"
    if KIND.startswith("landlock"):
        mode = "on"
        setattr(fence_module, "_WAYS", ("landlock",))  # noqa: B010
    fence = Fence(mode, [str(P / "ws"), str(P / "worktree")], floor, network)
    plan = await fence.open(command[0])
    assert plan is not None
    nothing = os.open(os.devnull, os.O_RDONLY)
    process = await spawn(
        command,
        env=fence.environment(os.environ),
        cwd=str(P / "ws"),
        stdin=nothing,
        stdout=1,
        stderr=2,
        fence=plan,
    )
    await process.wait()
    await process.stop(exit_within=0, term_within=0)
    os.close(nothing)
    await fence.aclose()
    assert list((P / "data/fences").iterdir()) == []


def main() -> None:
    make_files()
    os.environ["ROOM"] = str(ctypes.addressof(ROOM))
    pid = os.getpid()
    addresses = [
        str(HOME / "some.sock"),
        str(HOME / ".gnupg/S.gpg-agent"),
        str(HOME / ".docker/run/docker.sock"),
        str(P / "sockets/ssh"),
        str(P / "sockets/bus"),
        str(P / "runtime/systemd/private"),
        f"/tmp/dragoman-test-{pid}.sock",
        f"\0dragoman-test-{pid}",
    ]
    if os.geteuid() == 0:
        addresses.append(f"/run/dragoman-test-{pid}.sock")
    with ExitStack() as around:
        for address in addresses:
            around.enter_context(listening(address))
        around.enter_context(keys())
        terminal = around.enter_context(own_terminal())
        target = around.enter_context(victim())
        around.enter_context(elsewhere())
        around.enter_context(shared_memory())
        # None may be in /tmp, which nobody sees from inside.
        for path in PROGRAMS:
            (P / path.name).write_bytes(path.read_bytes())
        os.environ["SERVERS"] = around.enter_context(servers())
        words = [str(P / PROGRAM), str(P), str(pid), str(target), terminal, *NAMES]
        asyncio.run(run([os.path.realpath(sys.executable), "-I", "-S", *words]))


if __name__ == "__main__":
    assert stat.S_ISDIR(P.stat().st_mode)
    main()
