"""Attempts to reach other processes and their sockets."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import termios

from attempts import (
    HOME,
    HOST,
    INHERITED,
    TERMINAL,
    VICTIM,
    Held,
    P,
    call,
    checked,
    escape,
    libc,
    put,
    reach,
    root_only,
)

HELPERS = [int(number) for number in os.environ["HELPERS"].split()]


# ── other processes ───────────────────────────────────────────────────────────────────────────────


@escape
def by_signal() -> None:
    os.kill(VICTIM, signal.SIGUSR1)


@escape
def by_signal_to_the_host() -> None:
    os.kill(HOST, 0)


@escape
def by_signal_to_the_group() -> None:
    os.killpg(os.getpgid(VICTIM), 0)


@escape
def by_tracing() -> None:
    checked(libc.ptrace(16, VICTIM, None, None))
    os.waitpid(VICTIM, 0x40000000)
    checked(libc.ptrace(17, VICTIM, None, None))


@escape
def by_tracing_the_host() -> None:
    os.readlink(f"/proc/{HOST}/fd/0")


@escape
def by_memory_of_another_process() -> None:
    with open(f"/proc/{VICTIM}/maps") as maps:
        start = next(int(line.split("-")[0], 16) for line in maps if " rw-p " in line)
    change_memory(VICTIM, start)


@escape
def by_memory_of_the_host() -> None:
    change_memory(HOST, int(os.environ["ROOM"]))


def change_memory(process: int, address: int) -> None:
    data = ctypes.create_string_buffer(8)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(data), 8)
    remote = (ctypes.c_void_p * 2)(address, 8)
    checked(libc.process_vm_readv(process, local, 1, remote, 1, 0))
    checked(libc.process_vm_writev(process, local, 1, remote, 1, 0))


@escape
def by_signal_to_a_helper() -> None:
    """Of Dragoman: the warden, the zygote, a keeper."""
    for helper in HELPERS:
        os.kill(helper, 0)


@root_only
def by_tracing_a_helper() -> None:
    checked(libc.ptrace(16, HELPERS[-1], None, None))
    os.waitpid(HELPERS[-1], 0x40000000)
    checked(libc.ptrace(17, HELPERS[-1], None, None))


@root_only
def by_channel_of_a_helper() -> None:
    """The sockets by which helpers take orders, and by which they know that the host lives."""
    channels = [(helper, number) for helper in HELPERS for number in sockets_of(helper)]
    assert channels or not os.path.exists(f"/proc/{HOST}/fd")
    for helper, number in channels or [(HELPERS[-1], 3)]:
        os.close(call(438, os.pidfd_open(helper), number, 0))


def sockets_of(process: int) -> list[int]:
    folder = f"/proc/{process}/fd"
    if not os.path.exists(folder):
        return []
    links = {int(number): os.readlink(f"{folder}/{number}") for number in os.listdir(folder)}
    return [number for number, link in links.items() if link.startswith("socket:")]


@escape
def by_memory_file_of_another_process() -> None:
    os.close(os.open(f"/proc/{VICTIM}/mem", os.O_RDWR))


@escape
def by_variables_of_another_process() -> None:
    with open(f"/proc/{VICTIM}/environ", "rb") as file:
        if b"VICTIM" not in file.read():
            raise Held("another process")


@escape
def by_taking_a_descriptor() -> None:
    process = os.pidfd_open(VICTIM)
    os.close(call(438, process, 9, 0))


@escape
def by_limits_of_another_process() -> None:
    limits = resource.prlimit(VICTIM, resource.RLIMIT_NOFILE)
    resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, limits)


@escape
def by_priority_of_another_process() -> None:
    os.setpriority(os.PRIO_PROCESS, VICTIM, os.getpriority(os.PRIO_PROCESS, VICTIM))


@escape
def by_shared_memory() -> None:
    identifier = checked(libc.shmget(0x44000000 + HOST, 64, 0))
    libc.shmat.restype = ctypes.c_void_p
    if libc.shmat(identifier, None, 0) in (None, ctypes.c_void_p(-1).value):
        raise Held("not attached")


@escape
def by_shared_memory_file() -> None:
    put(f"/dev/shm/dragoman-test-{HOST}")


@escape
def by_terminal_of_another() -> None:
    os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))


@escape
def by_typing_into_the_terminal() -> None:
    """The terminal of the process that started this one, as if a person typed there."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        raise Held(f"no terminal: {error}") from error
    fcntl.ioctl(terminal, termios.TIOCSTI, b"x")


@escape
def by_keys_of_the_session() -> None:
    key_in(-3)


@escape
def by_keys_of_the_user() -> None:
    key_in(-4)


def key_in(keyring: int) -> None:
    number = 250 if os.uname().machine == "x86_64" else 219
    if call(number, 10, keyring, b"user", b"dragoman-test-%d" % HOST, 0) <= 0:
        raise Held("no key")


# ── sockets ───────────────────────────────────────────────────────────────────────────────────────


@escape
def by_socket_at_home() -> None:
    reach(f"{HOME}/some.sock")


@escape
def by_socket_of_gpg() -> None:
    reach(f"{HOME}/.gnupg/S.gpg-agent")


@escape
def by_socket_of_docker() -> None:
    reach(f"{HOME}/.docker/run/docker.sock")


@escape
def by_socket_in_the_temporary_folder() -> None:
    reach(f"/tmp/dragoman-test-{HOST}.sock")


@escape
def by_socket_of_ssh() -> None:
    if "SSH_AUTH_SOCK" not in os.environ:
        raise Held("no variable")
    reach(os.environ["SSH_AUTH_SOCK"])


@escape
def by_bus() -> None:
    if "DBUS_SESSION_BUS_ADDRESS" not in os.environ:
        raise Held("no variable")
    reach(os.environ["DBUS_SESSION_BUS_ADDRESS"].removeprefix("unix:path="))


@escape
def by_manager_of_services() -> None:
    """As `systemd-run` does."""
    reach(f"{P}/runtime/systemd/private")


@root_only
def by_socket_of_the_system() -> None:
    reach(f"/run/dragoman-test-{HOST}.sock")


@escape
def by_abstract_socket() -> None:
    reach(f"\0dragoman-test-{HOST}")


@escape
def by_inherited_descriptor() -> None:
    """A control of its own: the test hands one over where there is no fence."""
    if not INHERITED:
        raise Held("none")
