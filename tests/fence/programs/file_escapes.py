"""Attempts to write and read files that are out of reach, and to get around mounts."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess

from attempts import (
    DATA,
    HOME,
    HOST,
    MS_BIND,
    MS_REC,
    MS_REMOUNT,
    NEWNS,
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
    new,
    put,
    root_only,
    secret,
    shell,
    user_only,
)

# ── writing outside ───────────────────────────────────────────────────────────────────────────────


@escape
def by_path() -> None:
    put(f"{OUT}/file")


@escape
def by_new_file() -> None:
    new(f"{OUT}/new")


@escape
def by_truncating() -> None:
    os.truncate(f"{OUT}/file", 3)


@escape
def by_deleting() -> None:
    os.unlink(f"{OUT}/to-delete")


@escape
def by_making_a_folder() -> None:
    os.mkdir(f"{OUT}/folder")


@escape
def by_mode() -> None:
    os.chmod(f"{OUT}/file", 0o640)


@escape
def by_times() -> None:
    os.utime(f"{OUT}/file", (1, 1))


@escape
def by_attribute() -> None:
    os.setxattr(f"{OUT}/file", "user.x", b"y")


@escape
def by_link_of_the_workspace() -> None:
    put(f"{WS}/link-out/file")


@escape
def by_new_link() -> None:
    os.symlink(f"{OUT}/file", f"{WS}/new-link")
    put(f"{WS}/new-link")


@escape
def by_new_hard_link() -> None:
    os.link(f"{OUT}/file", f"{WS}/hard")
    put(f"{WS}/hard")


@escape
def by_renaming_out() -> None:
    put(f"{WS}/moved", flags=os.O_WRONLY | os.O_CREAT)
    os.rename(f"{WS}/moved", f"{OUT}/moved")


@escape
def by_renaming_in() -> None:
    os.rename(f"{OUT}/to-move", f"{WS}/moved-in")


@escape
def by_folder_descriptor() -> None:
    folder = os.open(OUT, os.O_RDONLY)
    os.close(os.open("file", os.O_WRONLY, dir_fd=folder))


@escape
def by_going_up() -> None:
    os.chdir(WS)
    put("../outside/file")


@escape
def by_own_root() -> None:
    put(f"/proc/self/root{OUT}/file")


@escape
def by_own_folder() -> None:
    os.chdir(WS)
    put("/proc/self/cwd/../outside/file")


@escape
def by_root_of_the_host() -> None:
    put(f"/proc/{HOST}/root{OUT}/file")


@escape
def by_root_of_another_process() -> None:
    put(f"/proc/{VICTIM}/root{OUT}/file")


@escape
def by_folder_of_another_process() -> None:
    put(f"/proc/{VICTIM}/cwd/outside/file")


@escape
def by_descriptor_of_another_process() -> None:
    put(f"/proc/{VICTIM}/fd/9")


@escape
def by_moving_the_workspace() -> None:
    os.rename(WS, f"{P}/ws-moved")
    os.rename(f"{P}/ws-moved", WS)


@escape
def by_memory_file() -> None:
    shell_file = os.memfd_create("sh", 0)
    with open("/bin/sh", "rb") as file:
        os.write(shell_file, file.read())
    words = ["sh", "-c", f"echo x > {OUT}/file"]
    program = f"/proc/self/fd/{shell_file}"
    done = subprocess.run(
        words, executable=program, pass_fds=[shell_file], capture_output=True, check=False
    )
    if done.returncode:
        raise Held("the shell failed")


@escape
def by_ring() -> None:
    """`io_uring` opens files without the system call that others see."""
    import mmap

    parameters = ctypes.create_string_buffer(120)
    try:
        ring = call(425, 4, parameters)
    except OSError as error:
        raise Impossible(str(error)) from error
    words = struct.unpack_from("30I", parameters.raw)
    sq, cq = words[10:20], words[20:30]  # offsets of the two queues
    read, write = mmap.PROT_READ, mmap.PROT_WRITE
    queue = mmap.mmap(ring, 4096, mmap.MAP_SHARED, read | write, offset=0)
    entries = mmap.mmap(ring, 4096, mmap.MAP_SHARED, read | write, offset=0x10000000)
    done = mmap.mmap(ring, 4096, mmap.MAP_SHARED, read | write, offset=0x8000000)
    path = ctypes.create_string_buffer(f"{OUT}/file".encode())
    address = ctypes.addressof(path)
    struct.pack_into("BBHiQQIIQ", entries, 0, 18, 0, 0, -100, 0, address, 0, os.O_WRONLY, 1)
    array = sq[6]
    struct.pack_into("I", queue, array, 0)
    struct.pack_into("I", queue, sq[1], 1)
    call(426, ring, 1, 1, 1, None, 0)
    result = struct.unpack_from("i", done, cq[5] + 8)[0]
    if result < 0:
        raise OSError(-result, os.strerror(-result))


@root_only
def by_file_handle() -> None:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    number = ctypes.c_int()
    checked(libc.name_to_handle_at(-100, f"{OUT}/file".encode(), handle, ctypes.byref(number), 0))
    folder = os.open(WS, os.O_RDONLY)
    os.close(checked(libc.open_by_handle_at(folder, handle, os.O_WRONLY)))


@root_only
def by_disk() -> None:
    disks = [name for name in os.listdir("/sys/class/block") if name[-1].isalpha()]
    if not disks:
        raise Impossible("no disk")
    try:
        os.close(os.open(f"/dev/{disks[0]}", os.O_RDONLY))
    except PermissionError as error:
        raise Impossible("a container refuses it already") from error


@root_only
def by_making_a_device() -> None:
    os.mknod(f"{WS}/device", 0o600 | 0o020000, os.makedev(1, 1))
    os.unlink(f"{WS}/device")


# ── mounts and namespaces ─────────────────────────────────────────────────────────────────────────


@root_only
def by_remounting() -> None:
    checked(libc.unshare(NEWNS))
    mount("none", "/", "", MS_REMOUNT | MS_BIND)
    put(f"{OUT}/file")


@root_only
def by_binding() -> None:
    checked(libc.unshare(NEWNS))
    os.makedirs(f"{WS}/place", exist_ok=True)
    mount(OUT, f"{WS}/place", "", MS_BIND)
    put(f"{WS}/place/file")


@user_only
def by_nested_remount() -> None:
    nested()
    mount("none", "/", "", MS_REMOUNT | MS_BIND)
    put(f"{OUT}/file")


@user_only
def by_nested_bind() -> None:
    nested()
    os.makedirs(f"{WS}/place", exist_ok=True)
    mount(OUT, f"{WS}/place", "", MS_BIND)
    put(f"{WS}/place/file")


@user_only
def by_nested_remount_of_what_is_protected() -> None:
    nested()
    hooks = f"{WS}/.git/hooks"
    if not held_there():
        mount(hooks, hooks, "", MS_BIND)
    mount("none", hooks, "", MS_REMOUNT | MS_BIND)
    new(f"{WS}/.git/hooks/post-commit")


def held_there() -> bool:
    with open("/proc/self/mountinfo") as file:
        return f" {WS}/.git/hooks " in file.read()


@user_only
def by_nested_overlay() -> None:
    nested()
    for name in ("upper", "work", "merged"):
        os.makedirs(f"{WS}/{name}", exist_ok=True)
    lower = f"lowerdir={HOME},upperdir={WS}/upper,workdir={WS}/work"
    mount("overlay", f"{WS}/merged", "overlay", 0, lower)
    secret(f"{WS}/merged/.ssh/id")


@user_only
def by_nested_overlay_above_outside() -> None:
    nested()
    os.makedirs(f"{WS}/merged2", exist_ok=True)
    options = f"lowerdir={WS},upperdir={OUT}/upper,workdir={OUT}/work"
    mount("overlay", f"{WS}/merged2", "overlay", 0, options)
    put(f"{WS}/merged2/a-file", flags=os.O_WRONLY | os.O_CREAT)


@user_only
def by_nested_uncovering() -> None:
    """A copy of the folder without what is mounted in it."""
    nested()
    os.makedirs(f"{WS}/home", exist_ok=True)
    mount(HOME, f"{WS}/home", "", MS_BIND)
    secret(f"{WS}/home/.ssh/id")


@user_only
def by_nested_uncovering_of_a_whole_copy() -> None:
    """With what is mounted in it, which is then taken off the copy."""
    nested()
    os.makedirs(f"{WS}/copy", exist_ok=True)
    mount(HOME, f"{WS}/copy", "", MS_BIND | MS_REC)
    libc.umount2(f"{WS}/copy/.ssh".encode(), 2)
    secret(f"{WS}/copy/.ssh/id")


@user_only
def by_nested_attributes_of_mounts() -> None:
    nested()
    os.makedirs(f"{WS}/writable", exist_ok=True)
    mount(OUT, f"{WS}/writable", "", MS_BIND)
    attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)  # no longer read-only
    call(442, -100, f"{WS}/writable".encode(), 0, ctypes.byref(attributes), 32)
    put(f"{WS}/writable/file")


@user_only
def by_nested_root() -> None:
    """A root of its own, without the one that is fenced."""
    nested()
    os.makedirs(f"{WS}/root/old", exist_ok=True)
    mount("tmpfs", f"{WS}/root", "tmpfs")
    for name in ("old", "home"):
        os.mkdir(f"{WS}/root/{name}")
    mount(HOME, f"{WS}/root/home", "", MS_BIND | MS_REC)
    checked(libc.pivot_root(f"{WS}/root".encode(), f"{WS}/root/old".encode()))
    os.chdir("/")
    checked(libc.umount2(b"/old", 2))
    libc.umount2(b"/home/.ssh", 2)
    secret("/home/.ssh/id")


@user_only
def by_nested_unmount() -> None:
    nested()
    if libc.umount2(f"{HOME}/.ssh".encode(), 2) and os.listdir(f"{HOME}/.ssh") == []:
        raise Held("it cannot be unmounted")
    secret(f"{HOME}/.ssh/id")


@user_only
def by_nested_tree_copy() -> None:
    nested()
    tree = call(428, -100, HOME.encode(), 1)
    with open(os.open(".ssh/id", os.O_RDONLY, dir_fd=tree)) as file:
        if "secret" not in file.read():
            raise Held("it is empty")


@root_only
def by_entering_the_hosts_mounts() -> None:
    descriptor = os.open(f"/proc/{HOST}/ns/mnt", os.O_RDONLY)
    checked(libc.setns(descriptor, NEWNS))
    put(f"{OUT}/file")


@root_only
def by_root_of_a_folder() -> None:
    """Out of a changed root by a folder that was open before."""
    folder = os.open("/", os.O_RDONLY)
    os.makedirs(f"{WS}/jail", exist_ok=True)
    os.chroot(f"{WS}/jail")
    os.fchdir(folder)
    os.chroot(".")
    put(f"{OUT}/file")


@user_only
def by_set_user_id() -> None:
    shell(f"{P}/rootly -p -c 'echo x > {P}/of-root'")


@root_only
def by_settings_of_the_kernel() -> None:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))


@root_only
def by_name_of_the_machine() -> None:
    name = os.uname().nodename.encode()
    checked(libc.sethostname(name, len(name)))


@root_only
def by_files_of_the_kernel() -> None:
    os.close(os.open("/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY))


@root_only
def by_control_group() -> None:
    folders = [f"/sys/fs/cgroup/{name}" for name in ("", "unified", "cpu", "pids")]
    places = [f"{folder}/cgroup.procs" for folder in folders]
    there = [place for place in places if os.path.exists(place)]
    if not there:
        raise Impossible("no control groups")
    os.close(os.open(there[0], os.O_WRONLY))


# ── what must not be read ─────────────────────────────────────────────────────────────────────────


@escape
def by_reading_keys() -> None:
    secret(f"{HOME}/.ssh/id")


@escape
def by_reading_keys_through_a_link() -> None:
    os.symlink(f"{HOME}/.ssh", f"{WS}/keys")
    secret(f"{WS}/keys/id")


@escape
def by_reading_keys_through_the_root() -> None:
    secret(f"/proc/self/root{HOME}/.ssh/id")


@escape
def by_reading_keys_through_another_mount() -> None:
    if not os.path.exists(f"{P}/again/.aws"):
        raise Impossible("only root can mount the same folder twice")
    secret(f"{P}/again/.ssh/id")


@escape
def by_linking_keys() -> None:
    os.link(f"{HOME}/.ssh/id", f"{WS}/linked-key")
    secret(f"{WS}/linked-key")


@escape
def by_reading_cloud_credentials() -> None:
    secret(f"{HOME}/.aws/credentials")


@escape
def by_reading_a_browser() -> None:
    secret(f"{HOME}/.mozilla/cookies")


@escape
def by_reading_passwords_in_a_file() -> None:
    secret(f"{HOME}/.netrc")


@escape
def by_reading_another_agent() -> None:
    secret(f"{HOME}/.codex/auth.json")


@root_only
def by_reading_passwords_of_the_system() -> None:
    with open("/etc/shadow") as file:
        if not file.read():
            raise Held("it is empty")


# ── Dragoman's own ────────────────────────────────────────────────────────────────────────────────


@escape
def by_reading_the_data() -> None:
    secret(f"{DATA}/sessions.db")


@escape
def by_writing_the_data() -> None:
    new(f"{DATA}/rules.json")


@escape
def by_reading_the_settings() -> None:
    secret(f"{HOME}/.config/dragoman/settings.json")
