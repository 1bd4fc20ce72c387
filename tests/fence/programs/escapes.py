"""Attempts to get out of a fence: `escapes.py PLAYGROUND HOST VICTIM TERMINAL [NAME …]`.

Each runs in a fork and prints `NAME escaped` or `NAME held REASON`. Without a fence around it, each
must succeed, or it proves nothing; one that cannot be tried here at all prints `NAME impossible`.
Nothing that succeeds does harm outside the playground.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable

P, HOST, VICTIM, TERMINAL = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
WS, HOME, DATA, OUT = f"{P}/ws", f"{P}/home", f"{P}/data", f"{P}/outside"
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NEWNS, NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC = 1, 32, 4096, 16384

ESCAPES: dict[str, Callable[[], None]] = {}
FOR_ROOT: set[str] = set()
"""Attempts that only root can make."""
FOR_USERS: set[str] = set()


def inherited() -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue  # the one that listed the folder
        found.append(int(name))
    return [descriptor for descriptor in found if descriptor > 2]


INHERITED = inherited()


class Impossible(Exception):
    """It cannot be tried on this machine."""


class Held(Exception):
    """It did not work, without an error."""


def escape(work: Callable[[], None]) -> Callable[[], None]:
    ESCAPES[work.__name__] = work
    return work


def root_only(work: Callable[[], None]) -> Callable[[], None]:
    FOR_ROOT.add(work.__name__)
    return escape(work)


def user_only(work: Callable[[], None]) -> Callable[[], None]:
    FOR_USERS.add(work.__name__)
    return escape(work)


def checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def call(number: int, *words: object) -> int:
    return checked(
        libc.syscall(*[ctypes.c_long(w) if isinstance(w, int) else w for w in (number, *words)])
    )


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    checked(
        libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode() or None)
    )


def nested() -> None:
    """Every right again, in namespaces inside the namespaces."""
    user, group = os.geteuid(), os.getegid()
    checked(libc.unshare(NEWUSER | NEWNS))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"0 {user} 1"),
        ("gid_map", f"0 {group} 1"),
    ):
        put(f"/proc/self/{name}", text)


def put(path: str, text: str = "escaped\n", flags: int = os.O_WRONLY) -> None:
    file = os.open(path, flags)
    os.write(file, text.encode())
    os.close(file)


def new(path: str) -> None:
    put(path, flags=os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.unlink(path)


def secret(path: str) -> None:
    with open(path) as file:
        if "secret" not in file.read():
            raise Held("it is empty")


def shell(line: str) -> None:
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    if done.returncode:
        raise Held(done.stderr.decode(errors="replace").strip()[-200:])


def reach(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(path)


# ── writing outside ───────────────────────────────────────────────────────────────────────────


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


# ── mounts and namespaces ─────────────────────────────────────────────────────────────────────


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


@root_only
def by_cron() -> None:
    folder = next(filter(os.path.isdir, ("/etc/cron.d", "/var/spool/cron", "/etc")))
    new(f"{folder}/dragoman-test-file")


@root_only
def by_start_of_the_system() -> None:
    folder = next(filter(os.path.isdir, ("/etc/systemd/system", "/etc/init.d", "/etc")))
    new(f"{folder}/dragoman-test.service")


# ── other processes ───────────────────────────────────────────────────────────────────────────


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
    data = ctypes.create_string_buffer(8)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(data), 8)
    remote = (ctypes.c_void_p * 2)(start, 8)
    read = libc.process_vm_readv(VICTIM, local, 1, remote, 1, 0)
    checked(read)
    checked(libc.process_vm_writev(VICTIM, local, 1, remote, 1, 0))


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
    identifier = checked(libc.shmget(0x44524147, 64, 0))
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
def by_keys_of_the_kernel() -> None:
    found = call(
        250 if os.uname().machine == "x86_64" else 219, 10, -3, b"user", b"dragoman-test", 0
    )
    if found <= 0:
        raise Held("no key")


# ── sockets ───────────────────────────────────────────────────────────────────────────────────


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


# ── Dragoman's own ────────────────────────────────────────────────────────────────────────────


@escape
def by_reading_the_data() -> None:
    secret(f"{DATA}/sessions.db")


@escape
def by_writing_the_data() -> None:
    new(f"{DATA}/rules.json")


@escape
def by_reading_the_settings() -> None:
    secret(f"{HOME}/.config/dragoman/settings.json")


# ── what runs later ───────────────────────────────────────────────────────────────────────────


@escape
def by_hook() -> None:
    put(f"{WS}/.git/hooks/pre-commit")


@escape
def by_new_hook() -> None:
    new(f"{WS}/.git/hooks/post-checkout")


@escape
def by_settings_of_git() -> None:
    put(f"{WS}/.git/config", flags=os.O_WRONLY | os.O_APPEND)


@escape
def by_replacing_the_settings_of_git() -> None:
    shutil.copy(f"{WS}/.git/config", f"{WS}/config")
    os.rename(f"{WS}/config", f"{WS}/.git/config")


@escape
def by_git_itself() -> None:
    shell(f"git -C {WS} config core.hooksPath /tmp && git -C {WS} config --unset core.hooksPath")


@escape
def by_moving_the_repository() -> None:
    os.rename(f"{WS}/.git", f"{WS}/git")
    os.rename(f"{WS}/git", f"{WS}/.git")


@escape
def by_moving_the_hooks() -> None:
    os.rename(f"{WS}/.git/hooks", f"{WS}/hooks")
    os.rename(f"{WS}/hooks", f"{WS}/.git/hooks")


@escape
def by_deleting_the_hooks() -> None:
    os.unlink(f"{WS}/.git/hooks/to-delete")


@escape
def by_another_name_of_the_hooks() -> None:
    os.symlink(f"{WS}/.git/hooks", f"{WS}/other-name")
    new(f"{WS}/other-name/pre-push")


@escape
def by_hook_of_a_submodule() -> None:
    new(f"{WS}/.git/modules/sub/hooks/pre-commit")


@escape
def by_file_of_a_worktree() -> None:
    put(f"{P}/worktree/.git", f"gitdir: {WS}/evil\n")


@escape
def by_repository_of_a_worktree() -> None:
    put(f"{P}/main/.git/config", flags=os.O_WRONLY | os.O_APPEND)


@escape
def by_hooks_of_a_worktree() -> None:
    new(f"{P}/main/.git/hooks/pre-commit")


@escape
def by_environment_file() -> None:
    put(f"{WS}/.envrc")


@escape
def by_settings_of_an_editor() -> None:
    put(f"{WS}/.vscode/settings.json")


@escape
def by_moving_the_settings_of_an_editor() -> None:
    os.rename(f"{WS}/.vscode", f"{WS}/vscode")
    os.rename(f"{WS}/vscode", f"{WS}/.vscode")


@escape
def by_settings_of_an_agent() -> None:
    put(f"{WS}/.claude/settings.json")


@escape
def by_workflow() -> None:
    put(f"{WS}/.github/workflows/ci.yml")


@escape
def by_moving_the_workflows() -> None:
    os.rename(f"{WS}/.github", f"{WS}/github")
    os.rename(f"{WS}/github", f"{WS}/.github")


@escape
def by_deeper_settings_of_an_agent() -> None:
    put(f"{WS}/packages/one/.mcp.json")


@escape
def by_start_of_the_shell() -> None:
    put(f"{HOME}/.bashrc", flags=os.O_WRONLY | os.O_APPEND)


@escape
def by_new_start_of_the_shell() -> None:
    new(f"{HOME}/.zshenv")


@escape
def by_start_of_the_desktop() -> None:
    os.makedirs(f"{HOME}/.config/autostart", exist_ok=True)
    new(f"{HOME}/.config/autostart/x.desktop")


@escape
def by_program_of_the_user() -> None:
    new(f"{HOME}/.local/bin/ls")


# ── what must not be read ─────────────────────────────────────────────────────────────────────


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


def attempt(name: str, work: Callable[[], None]) -> str:
    if name in (FOR_ROOT if os.geteuid() else FOR_USERS):
        return "impossible: for another user"
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.write(writer, outcome(work).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(pid, 0)
    return said or "held: it was killed"


def outcome(work: Callable[[], None]) -> str:
    try:
        work()
    except Impossible as error:
        return f"impossible: {error}"
    except OSError as error:
        return f"held: {errno.errorcode.get(error.errno or 0, '?')} {error}"
    except Held as error:
        return f"held: {error}"
    return "escaped"


if __name__ == "__main__":
    for name in sys.argv[5:] or ESCAPES:
        said = attempt(name, ESCAPES[name]).replace("\n", " ")
        os.write(1, f"{name} {said}\n".encode())
