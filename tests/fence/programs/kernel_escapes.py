"""Attempts with what the kernel offers beside plain names: handles, queues, copies of mounts."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import socket
import struct
from collections.abc import Callable

from attempts import (
    HOME,
    HOST,
    MS_BIND,
    MS_REC,
    OUT,
    VICTIM,
    WS,
    Held,
    Impossible,
    P,
    call,
    checked,
    escape,
    libc,
    mount,
    nested,
    put,
    reach,
    root_only,
    secret,
    shell,
    user_only,
)

TOP = HOST if os.path.exists(f"/proc/{HOST}/stat") else 1
"""The process above all others that are seen."""
IS_USUAL = os.uname().machine == "x86_64"


def since(number: int, *words: object) -> int:
    """A system call that kernels have had for a few years only."""
    try:
        return call(number, *words)
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise Impossible("this kernel has no such call") from error
        raise


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


@escape
def by_flags_of_a_file() -> None:
    """That are set by a descriptor for reading."""
    file = os.open(f"{OUT}/file", os.O_RDONLY)
    flags = ctypes.c_long()
    try:
        fcntl.ioctl(file, 0x80086601, flags)
    except OSError as error:
        raise Impossible("this file system has none") from error
    flags.value ^= 0x40  # whether it is left out of dumps
    fcntl.ioctl(file, 0x40086602, flags)


@escape
def by_opening_a_descriptor_again() -> None:
    file = os.open(f"{OUT}/file", os.O_RDONLY)
    put(f"/proc/self/fd/{file}")


@escape
def by_device_elsewhere() -> None:
    if not os.path.exists(f"{P}/device"):
        raise Impossible("only root can make a device")
    os.close(os.open(f"{P}/device", os.O_RDWR))


@user_only
def by_rights_of_a_program() -> None:
    if not os.path.exists(f"{P}/able"):
        raise Impossible("only root can give a program rights")
    shell(f"{P}/able -c 'echo x > {P}/of-root'")


@escape
def by_another_name_of_the_settings_of_git() -> None:
    os.link(f"{WS}/.git/config", f"{WS}/linked-config")
    put(f"{WS}/linked-config", flags=os.O_WRONLY | os.O_APPEND)


@escape
def by_moving_what_is_above_hidden_keys() -> None:
    """The next program would find them by the new name."""
    os.rename(f"{P}/more/inner", f"{P}/more/moved")
    os.rename(f"{P}/more/moved", f"{P}/more/inner")


@escape
def by_exchanging_a_protected_file() -> None:
    put(f"{WS}/own", flags=os.O_WRONLY | os.O_CREAT)
    for _ in range(2):
        checked(libc.renameat2(-100, f"{WS}/own".encode(), -100, f"{WS}/.envrc".encode(), 2))


@escape
def by_older_system_calls() -> None:
    """As programs of 32 bits make them."""
    if not IS_USUAL:
        raise Impossible("another machine")
    low = 0x40  # an address that fits in 32 bits
    access = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | low, access)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    path = f"{OUT}/file".encode() + b"\0"
    memory[256 : 256 + len(path)] = path
    # open(path, O_WRONLY) by interrupt 0x80
    load = b"\x53\xb8\x05\0\0\0\xbb" + struct.pack("I", start + 256) + b"\xb9\x01\0\0\0\x31\xd2"
    code = load + b"\xcd\x80\x5b\xc3"
    memory[: len(code)] = code
    result = in_a_fork(ctypes.CFUNCTYPE(ctypes.c_int)(start))
    if result is None:
        raise Impossible("this kernel runs no programs of 32 bits")
    if result < 0:
        raise OSError(-result, os.strerror(-result))


def in_a_fork(work: Callable[[], int]) -> int | None:
    """What it returns, or None if it does not survive it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.write(writer, struct.pack("i", work()))
        os._exit(0)
    os.close(writer)
    said = os.read(reader, 4)
    os.close(reader)
    os.waitpid(pid, 0)
    return struct.unpack("i", said)[0] if said else None


# ── mounts ────────────────────────────────────────────────────────────────────────────────────────

_WRITABLE = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
"""Attributes of mounts: no longer read-only."""
_COPY, _WITH_ALL_BENEATH = 1, 0x8000


@user_only
def by_nested_copy_with_attributes() -> None:
    nested()
    words = (OUT.encode(), _COPY, ctypes.byref(_WRITABLE), 32)
    copy = since(467, -100, *words)
    os.close(os.open("file", os.O_WRONLY, dir_fd=copy))


@user_only
def by_nested_unmount_in_a_copy() -> None:
    """Of a copy that is attached nowhere."""
    nested()
    copy = call(428, -100, HOME.encode(), _COPY | _WITH_ALL_BENEATH)
    libc.umount2(f"/proc/self/fd/{copy}/.ssh".encode(), 2)
    secret(f"/proc/self/fd/{copy}/.ssh/id")


@user_only
def by_nested_mount_beneath() -> None:
    """Something is put beneath what covers, which is then taken off."""
    nested()
    if not os.path.ismount(f"{HOME}/.ssh"):  # the control makes its own cover
        mount("tmpfs", f"{HOME}/.ssh", "tmpfs")
    copy = call(428, -100, OUT.encode(), _COPY)
    since(429, copy, b"", -100, f"{HOME}/.ssh".encode(), 0x4 | 0x200)
    checked(libc.umount2(f"{HOME}/.ssh".encode(), 2))


@user_only
def by_nested_unmount_of_the_root() -> None:
    nested()
    mount("/", "/", "", MS_BIND | MS_REC)
    checked(libc.umount2(b"/", 2))
    os.chdir("/")
    os.chroot("..")
    secret(f"{HOME}/.ssh/id")


@user_only
def by_nested_files_of_the_kernel() -> None:
    """Those that a network namespace of its own would show."""
    nested()
    checked(libc.unshare(0x40000000))
    os.makedirs(f"{WS}/sys", exist_ok=True)
    mount("sysfs", f"{WS}/sys", "sysfs")
    if os.statvfs(f"{WS}/sys").f_flag & os.ST_RDONLY:
        raise Held("it is read-only")


# ── other processes ───────────────────────────────────────────────────────────────────────────────


@escape
def by_handle_of_another_process() -> None:
    """Processes have handles, whose numbers can be guessed (Linux 6.14)."""
    own = os.pidfd_open(os.getpid())
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    place = ctypes.c_int()
    if libc.name_to_handle_at(own, b"", handle, ctypes.byref(place), 0x1000):
        raise Impossible("this kernel has none")
    size, kind, number = struct.unpack_from("<IiQ", handle)
    for guess in range(number, number - 5000, -1):
        guessed = ctypes.create_string_buffer(struct.pack("<IiQ", size, kind, guess))
        if (found := libc.open_by_handle_at(own, guessed, os.O_RDONLY)) >= 0:
            with open(f"/proc/self/fdinfo/{found}") as file:
                is_victim = f"Pid:\t{VICTIM}\n" in file.read()
            os.close(found)
            if is_victim:
                return
    raise Held("it is not found")


@escape
def by_memory_file_of_the_first() -> None:
    os.close(os.open(f"/proc/{TOP}/mem", os.O_RDWR))


@escape
def by_root_of_the_first() -> None:
    put(f"/proc/{TOP}/root{OUT}/file")


@escape
def by_descriptors_of_the_first() -> None:
    for name in os.listdir(f"/proc/{TOP}/fd"):
        os.readlink(f"/proc/{TOP}/fd/{name}")


@escape
def by_taking_a_descriptor_of_the_first() -> None:
    os.close(call(438, os.pidfd_open(TOP), 0, 0))


@escape
def by_queue_of_messages() -> None:
    checked(libc.msgget(0x44000000 + HOST, 0))


@escape
def by_semaphore() -> None:
    checked(libc.semget(0x44000000 + HOST, 0, 0))


@escape
def by_socket_in_another_network() -> None:
    """Of a program that has a network of its own; a name leads there all the same."""
    if not os.path.exists(f"{P}/elsewhere.sock"):
        raise Impossible("this system has one network alone")
    reach(f"{P}/elsewhere.sock")


@escape
def by_datagram_into_another_network() -> None:
    if not os.path.exists(f"{P}/datagrams.sock"):
        raise Impossible("this system has one network alone")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", f"{P}/datagrams.sock")


# ── the kernel ────────────────────────────────────────────────────────────────────────────────────


@root_only
def by_log_of_the_kernel() -> None:
    room = ctypes.create_string_buffer(4096)
    checked(libc.klogctl(3, room, 4096))


@root_only
def by_events_of_all_programs() -> None:
    if not IS_USUAL:
        raise Impossible("another machine")
    wanted = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0) + bytes(112))
    os.close(since(298, wanted, -1, 0, -1, 0))


@root_only
def by_memory_of_the_kernel() -> None:
    """A map of `bpf`, by which programs in the kernel talk."""
    if not IS_USUAL:
        raise Impossible("another machine")
    wanted = ctypes.create_string_buffer(struct.pack("5I", 2, 4, 4, 1, 0) + bytes(100))
    os.close(since(321, 0, wanted, 72))


@root_only
def by_watching_all_files() -> None:
    watcher = checked(libc.fanotify_init(0, 0))
    flags = 1 | 0x10  # of the whole mount
    checked(libc.fanotify_mark(watcher, flags, ctypes.c_uint64(0x20), -100, b"/"))
