from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from host.shell_traces import BUILTINS, PROGRAMS, Trace, confined, trace
from support.cost import cpu_seconds

from dragoman.host.commands.shell_line import (
    LONGEST_LINE,
    MOST_COMMANDS,
    SHELL_WORDS,
    PlainCommand,
    Reading,
    read_argv,
    read_line,
)

SEED = 20_201


def commands(reading: Reading) -> list[str]:
    """What it runs in the end, each with its folder."""
    assert reading.unread is None, reading
    last = [run[-1] for run in reading.runs]
    return [f"{each.folder or '.'}: {' '.join(each.argv)}" for each in last]


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("ls", [".: ls"]),
        ("cd src && ls", ["src: ls"]),
        ("git status --short && echo done", [".: git status --short", ".: echo done"]),
        ("ls -la && wc -l README.md", [".: ls -la", ".: wc -l README.md"]),
        ("a||b;c|d\ne", [".: a", ".: b", ".: c", ".: d", ".: e"]),
        ("a &&\n\n b |\n c;\nd", [".: a", ".: b", ".: c", ".: d"]),
        ("a\n\n\nb", [".: a", ".: b"]),
        ("grep -E 'a|b;c' \"x & y\" '$z' '\\d'", [r".: grep -E a|b;c x & y $z \d"]),
        ("git commit -m 'two\n\nlines, ünïcode!'", [".: git commit -m two\n\nlines, ünïcode!"]),
        ("g'i't s\"tat\"us", [".: git status"]),
        ("git diff HEAD~1", [".: git diff HEAD~1"]),
        ("make -j4 CC=gcc", [".: make -j4 CC=gcc"]),
        ("[ -f x ] && cat x", [".: [ -f x ]", ".: cat x"]),
        ("test a = b || printf '%s\\n' no", [".: test a = b", ".: printf %s\\n no"]),
        # folders
        ("cd /ws/src && cd ./deep && ls | wc", ["/ws/src/./deep: ls", "/ws/src/./deep: wc"]),
        ("cd 'my dir' && a && b", ["my dir: a", "my dir: b"]),
        ("a && cd src && b", [".: a", "src: b"]),
        # a cd may fail: what does not depend on it runs in either folder
        ("cd src && a; b", ["src: a", ".: b", "src: b"]),
        ("cd src && a || b", ["src: a", ".: b", "src: b"]),
        ("cd src && a\nb && c", ["src: a", ".: b", "src: b", ".: c", "src: c"]),
        # wrappers
        ("bash -lc 'cd src && pytest -q'", ["src: pytest -q"]),
        ("/bin/sh -c \"git status; ls 'a b'\"", [".: git status", ".: ls a b"]),
        ("cd x && bash -c 'cd ./y && a; b' && c", ["x/./y: a", "x: b", "x/./y: b", "x: c"]),
        ("env NO_COLOR=1 TERM=dumb pytest", [".: pytest"]),
        ("NO_COLOR=1 LC_ALL=C.UTF-8 pytest", [".: pytest"]),
        ("timeout 5 a", [".: a"]),
        ("timeout -k 1 -s KILL --foreground 2.5m a -k", [".: a -k"]),
        ("nice a && nice -n 10 b && nice -5 c && nice -n -1 d", [".: a", ".: b", ".: c", ".: d"]),
        ("time a | time -p b", [".: a", ".: b"]),
        ("time timeout 9 env bash -c 'sh -c a'", [".: a"]),
        ("env", [".: env"]),
        ("bash build.sh x | cat", [".: bash build.sh x", ".: cat"]),
        ("/ws/bin/env -S x", [".: /ws/bin/env -S x"]),
        # redirections
        ("a 2>&1 | b >/dev/null 2>&1 </dev/null", [".: a", ".: b"]),
        ("a2>&1 >x 2>>y", [".: a2"]),
    ],
)
def test_a_plain_line_is_its_commands(line: str, runs: list[str]) -> None:
    assert commands(read_line(line)) == runs


def test_files_of_redirections_are_listed_by_their_folder() -> None:
    read = read_line("cd src && a >x 2>'y z' <../in && bash -c 'cd ./deep && b >>z' 1>/tmp/w; c>v")
    assert read.unread is None
    assert read.reads == ("src/../in",)
    assert read.writes == ("src/x", "src/y z", "/tmp/w", "src/./deep/z", "v", "src/v")


@pytest.mark.parametrize(
    ("line", "early"),
    [
        ("cd src && echo x > y && cat < z | grep a", True),
        ("pytest -q > log && echo done", True),
        ("bash -c 'cd src && a > b'", True),
        ("a | tee", True),
        ("ln -s / x && echo y > x/z", False),
        ("git switch b && cd x && ls", False),
        ("git switch b; cat < x", False),
        ("ln -s / x | echo y > x/z", False),
        ("echo y > x/z | ln -s / x", False),
        ("bash -c 'ln -s / x' && echo y > x/z", False),
        ("bash -c 'echo y > x/z' | ln -s / x", False),
        ("env ln -s / x && bash -c 'cd x && ls'", False),
    ],
)
def test_what_an_earlier_command_may_have_put_there_is_noticed(line: str, early: bool) -> None:
    read = read_line(line)
    assert read.unread is None
    assert read.early == early


def test_every_way_to_see_a_command_is_listed() -> None:
    line = "timeout 5 bash -c 'cd src && git push'"
    assert read_line(line).runs == (
        (
            PlainCommand(("timeout", "5", "bash", "-c", "cd src && git push")),
            PlainCommand(("bash", "-c", "cd src && git push")),
            PlainCommand(("git", "push"), "src"),
        ),
    )


def test_words_that_no_shell_sees_are_looked_through_too() -> None:
    assert commands(read_argv(("bash", "-lc", "a && b"))) == [".: a", ".: b"]
    assert commands(read_argv(("git", "commit", "-m", "$(x); *"))) == [".: git commit -m $(x); *"]
    assert read_argv(("bash", "-c", "a $x")).unread == "an expansion ($)"


NOT_PLAIN = {
    "an expansion ($)": ("a $x", 'a "$x"', "a $(b)", "a $'b'", 'a $"b"', "a $((1))", "a x$"),
    "a command substitution": ("a `b`", 'a"`b`"'),
    "a backslash": ("a \\", "a \\\nb", "a\\;b", "\\ls", 'a"\\""'),
    "a file pattern (*)": ("a *", "a x*y"),
    "a file pattern (?)": ("a ?", "a?"),
    "a file pattern ([)": ("a [ab]", "a [", "[a]"),
    "a brace": ("a {b,c}", "{ a; }", "a {}", "a }"),
    "a home directory (~)": ("a ~", "a ~b/c", "a x=~/y", "a x:~", "a 'x'~"),
    "a comment": ("a # b", "# a", "a#b", "a '#' #"),
    "an exclamation mark": ("! a", "a !", 'a "!"'),
    "a parenthesis": ("(a)", "a ()", "a () { b; }", "((1))", "a=(b)"),
    "a command in the background": ("a & b", "a &", "a &> b", "a && & b", "a &&& b"),
    "a redirection that is not plain": (
        *("a << E\nb\nE", "a <<< b", "a >| b", "a <> b", "a >& b", "a 2>&- ", "a 2>&1x", "a 3> b"),
        *(
            "a <(b)",
            "a >(b)",
            "a > > b",
            "a 0> b",
            "a 1< b",
            "a 10> b",
            "a 4>&1",
            "a 2>&1>&2",
            "a 24>&2",
            "a > ''",
            "cat <1-5>x",
        ),
    ),
    "a redirection to a device": ("a > /dev/tcp/h/1", "a < /dev/stdin", "a > '/dev/fd/2'"),
    "a redirection without a file": ("a >", "a > ; b", "a <\nb", "a >\n"),
    "a quote that is not plain": ("a 'b", 'a "b', "a b'", "'", "a 'b\\'", "a '\\\\'"),
    "no command where one belongs": (
        *("", " ", "a;", "a\n", "\na", "a;;b", ";a", "a && ", "a || && b", "a | | b", "&& a"),
        *("a\n;b", "> x", "a; >x\nb", "a | > x"),
    ),
    "the character '|'": ("a |& b",),
    "the character '^'": ("a ^b",),
    "the character 'é'": ("a é", "é"),
    "the character ']'": ("a x]",),
    "a character that cannot be seen": (
        *("a\r\nb", "a\rb", "a\0b", "a\x1bb", "a\vb", "a\fb", "a\x7f", "a\u00a0b", "a\u2003b"),
        *("a '\u202e'", "a '\u200b'", "a '\ud800'", 'a "\x85"', "a '\u2028'"),
    ),
    "a word that begins with =": ("=ls", "a =b", "a > =b", "a ''=b", 'a ""=b'),
    "a cd that is not followed by &&, or not plain": (
        *("cd src", "cd src; a", "cd src || a", "cd src | a", "cd src\na", "a || cd src && b"),
        *("a | cd src && b", "cd && a", "cd a b && c", "cd src > x && a", "NO_COLOR=1 cd src && a"),
        "cd -P src && a",
    ),
    "a cd whose folder is not plain": (
        *("cd .. && a", "cd a/../b && c", "cd - && a", "cd +1 && a", "cd '' && a"),
    ),
    "a second cd": ("cd a && cd b && x", "cd /ws && cd b && x", "cd a && bash -c 'cd b && x'"),
    "sh, which runs what it is given": ("a | sh", "sh < a", "cat a | sh -s"),
    "python3, which runs what it is given": ("echo x | python3 -",),
    "a path with too many parts": (f"a > {'a/' * 65}b", f"cd {'a/' * 40}b && a > {'a/' * 40}b"),
    "too many files": (f"a {' '.join(f'>f{n}' for n in range(100))}",),
    "too many folders to run in": ("cd a && x; cd ./b && x; cd ./c && x",),
    "a variable that remains set": (
        "NO_COLOR=1 : && a",
        "PATH=x; a",
        "NO_COLOR=1",
        "a; NO_COLOR=1\nb",
    ),
    "the variable PATH for a command": ("PATH=. a", "env PATH=. a", "b; PATH+=x a"),
    "the variable LD_PRELOAD for a command": ("LD_PRELOAD=x a",),
    "the variable BASH_ENV for a command": ("env BASH_ENV=x bash -c a",),
    "the variable GIT_SSH_COMMAND for a command": ("GIT_SSH_COMMAND=x git fetch",),
    "the variable TERM for a command": ("TERM=/x a", "TERM==ls a", "env TERM=../x a"),
    "the variable LINES for a command": ("LINES=5x a", "env LINES=x a", "LINES= a", "LINES='²' a"),
    "timeout with options that are not plain": (
        *("timeout 5", "timeout a b", "timeout -k 1", "timeout -x 1 2 a", "timeout --help"),
        *("timeout -- 5 a", "timeout -s 'a b' 5 c", "timeout -k5 5 a"),
    ),
    "nice with options that are not plain": ("nice -n 5", "nice -n"),
    "time with options that are not plain": ("time", "time -p", "time; a"),
    "bash with options that are not plain": (
        *(
            "bash -c a b",
            "bash -xc a",
            "bash -c",
            "bash --rcfile x -c a",
            "bash +c a",
            "bash -ic a",
        ),
        *("bash -c -l a", "bash -s", "bash --version"),
    ),
    "sh with options that are not plain": ("a; sh -c a b c",),
    "test with words that a shell might evaluate": ("test -v x", "test 'x[y]' -eq 1", "test -t x"),
    "[ with words that a shell might evaluate": ("[ -v x ]", "[ a -lt b ]", "[ a", "[ -R x ]"),
    "printf with words that a shell might evaluate": (
        *(
            "printf -v PATH x",
            "printf %d x",
            "printf '%s%i' a b",
            "printf",
            "printf -- -v",
            "printf %",
        ),
    ),
    "too many commands": (
        ";".join(["a"] * (MOST_COMMANDS + 1)),
        "nice " * 9 + "a",
        "bash -c '" * 1 + "nice " * 9 + "a'",
    ),
    "too many characters": ("a " * LONGEST_LINE, "a " + "b" * LONGEST_LINE),
}


@pytest.mark.parametrize(
    ("line", "why"), [(line, why) for why, lines in NOT_PLAIN.items() for line in lines]
)
def test_whatever_is_not_surely_known_is_not_read(line: str, why: str) -> None:
    assert read_line(line).unread == why


@pytest.mark.parametrize("folder", ["/", "//", "./", "bin/", "/opt/bin/", "//bin/", "/bin/../x/"])
@pytest.mark.parametrize("wrapper", ["env", "time", "nice", "timeout 5", "bash -c", "sh -c"])
def test_a_wrapper_in_another_place_may_be_anything(wrapper: str, folder: str) -> None:
    name, *more = wrapper.split()
    [run] = read_line(f"{folder}{wrapper} a").runs
    assert [each.argv for each in run] == [(f"{folder}{name}", *more, "a")]
    [run] = read_line(f"/usr/bin/{wrapper} a").runs
    assert run[-1].argv == ("a",)


@pytest.mark.parametrize("folder", ["", "/", "/bin/", "/opt/bin/", "./"])
@pytest.mark.parametrize("program", ["bash", "sh", "python3", "psql"])
def test_a_program_that_runs_its_input_is_known_in_any_place(program: str, folder: str) -> None:
    assert "runs what it is given" in (read_line(f"a | {folder}{program}").unread or "")
    assert "runs what it is given" in (read_line(f"{folder}{program} < a").unread or "")


@pytest.mark.parametrize("wrapper", ["env ", "timeout 5 ", "nice ", "env NO_COLOR=1 nice -5 "])
@pytest.mark.parametrize("program", ["bash", "python3.12", "nodejs", "csh"])
def test_a_program_that_runs_its_input_is_known_behind_a_wrapper(
    program: str, wrapper: str
) -> None:
    assert "runs what it is given" in (read_line(f"a | {wrapper}{program}").unread or "")
    assert "runs what it is given" not in (read_line(f"{wrapper}{program} a").unread or "")


@pytest.mark.parametrize("word", ["-x", "%1", "+x", "@", ",x", "a=b", "'a b'", "'a=b'", "''", "]"])
@pytest.mark.parametrize("wrapper", ["", "time ", "nice -5 ", "timeout 5 ", "a && "])
def test_a_command_has_a_plain_name(word: str, wrapper: str) -> None:
    assert read_line(f"{wrapper}{word} b").unread is not None


@pytest.mark.parametrize("option", ["-i", "-u PATH", "-S 'a b'", "-C src", "-", "--", "-v"])
def test_no_option_of_env_is_looked_through(option: str) -> None:
    assert read_line(f"env {option} a").unread is not None


@pytest.mark.parametrize("word", sorted(SHELL_WORDS))
@pytest.mark.parametrize("line", ["{} x", "a; '{}' x", "env {} x", "bash -c '{} x'"])
def test_what_a_shell_itself_understands_is_not_read(word: str, line: str) -> None:
    assert read_line(line.replace("{}", word)).unread is not None


_ASKS = {
    "bash": "compgen -b; compgen -k",
    "zsh": "print -l ${(k)builtins} ${(k)reswords}",
    "fish": "builtin -n",
}
# Read as what they are, or checked: none changes the shell, or runs something.
_HARMLESS = {*BUILTINS, ":", "which", "time", "realpath"}


@pytest.mark.parametrize("shell", _ASKS)
def test_every_word_of_the_shells_here_is_known(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    words = subprocess.run([shell, "-c", _ASKS[shell]], capture_output=True, check=True, text=True)
    assert set(words.stdout.split()) - SHELL_WORDS <= _HARMLESS


def test_what_came_before_a_doubt_is_known() -> None:
    def seen(line: str) -> list[str]:
        reading = read_line(line)
        assert reading.unread is not None
        return [" ".join(run[-1].argv) for run in reading.runs]

    assert seen("a b; git push origin $x") == ["a b", "git push origin …"]
    assert seen("cd x; command git push; exec a") == ["cd x", "command git push", "exec a"]
    assert seen("A=1 git push && b") == ["git push", "b"]
    assert seen("bash -c 'git push $x'; ls") == ["git push …", "ls"]
    assert seen("$x; a") == []


HOSTILE = (
    "a " * (LONGEST_LINE // 2 - 1),
    "'a'" * (LONGEST_LINE // 3),
    "'\\a" * (LONGEST_LINE // 3),
    "a " + "~" * (LONGEST_LINE - 2),
    "1" * LONGEST_LINE,
    "\n" * LONGEST_LINE,
    "a;" + "\n" * (LONGEST_LINE - 2),
    "A=" * (LONGEST_LINE // 2),
    "NO_COLOR=1 " * (LONGEST_LINE // 11),
    "cd a && x; " * (LONGEST_LINE // 11),
    "a >b " * (LONGEST_LINE // 5),
    "env " * (LONGEST_LINE // 4),
)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_the_longest_lines_take_little_time(number: int) -> None:
    assert cpu_seconds(lambda: read_line.__wrapped__(HOSTILE[number])) < 0.2


# ── the same, as real shells see it ───────────────────────────────────────────────────────────

NAMES = ("a", "b", "git", "npm", "ls", "cat", "x.sh", "no", "./a", "echo", "true", "printf", "test")
WORDS = (
    *("status", "-x", "--long=1", "'two words'", '"it\'s"', "a/b.c:1", "HEAD~1", "''", "'a;b'"),
    *('"x|y & z"', "'$x'", "'*'", "src", "1", "2", "'\\n'", '"ü"', "%h", "@", "a=b", "+x", "-c"),
    *("''x\"y\"'z'", "-", "'new\nline'", "cd", "if", "time", "[", "]", "="),
)
REDIRECTIONS = (
    *(" > out", " >out", " >> 'o 2'", " 2>err", " 2>&1", " >/dev/null 2>&1", " < in", " <in >out"),
    *(" 1>o", " >&2", " >src/o", " > link/o", " > 'my dir/o'", "> ../up", " 2> deep/o", " <err"),
)
JOINTS = (" && ", "&&", " || ", "; ", ";", " | ", "|", "\n", " &&\n", "\n\n", " |\n")
MOVES = ("src", "'my dir'", "link", "./src/deep", "nowhere", "src && cd deep", "link/deep")
WRAPPERS = (
    *(
        "env ",
        "env NO_COLOR=1 ",
        "timeout 5 ",
        "timeout -k 1 5s ",
        "nice ",
        "nice -n 5 ",
        "nice -5 ",
    ),
    *("time ", "time -p ", "NO_COLOR=1 ", "TERM=x LINES=5 "),
)
SHELLS = ("bash -c ", "sh -c ", "bash -lc ", "sh -lc ", "bash -l -c ")
HOSTILE_PIECES = (
    *"$`\\*?[]{}~#!&|;<>()'\"=%^ \t\n\r-+@:.,/0123456789abcx_",
    *("&&", "||", "|&", ";;", "<<", ">>", "2>&1", "&>", ">|", "$(a)", "`a`", "${x}", "$'a'"),
    *("cd ", "cd src && ", "chdir src", "\\\n", "if ", "time ", "! ", "{ ", "<(a)", "A=1 ", "#"),
    *("\u00a0", "~/", "=a", "1>", "3>", "<1-5>", "/dev/null", "env ", "coproc ", "exec ", "eval "),
    *("command ", "''", "[ ", " ]", "printf -v PATH x", "bash -c ", "NO_COLOR=1 ", "..", "\n;"),
    *(" *", " s?c", " [m-s]*", " {a,b}", " ~", "; > o\n"),
)


class Lines:
    """Random lines, and what becomes of them by a few strokes."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def plain(self, count: int) -> dict[str, Reading]:
        """Those of them that are read."""
        found: dict[str, Reading] = {}
        while len(found) < count:
            line = self._mutated(self._line(0))
            if (reading := read_line(line)).unread is None:
                found[line] = reading
        return found

    def _line(self, depth: int) -> str:
        line = ""
        for number in range(self._rng.choice((1, 1, 2, 2, 3, 4))):
            line += self._rng.choice(JOINTS) if number else ""
            line += f"cd {self._rng.choice(MOVES)} && " if self._rng.random() < 0.2 else ""
            line += self._command(depth)
        return line

    def _command(self, depth: int) -> str:
        chance = self._rng.random()
        if chance < 0.1 and depth < 2:
            inner = self._line(depth + 1)
            quote = '"' if "'" in inner else "'"
            return f"{self._rng.choice(SHELLS)}{quote}{inner}{quote}"
        if chance < 0.2:
            return self._rng.choice(WRAPPERS) + self._command(depth)
        words = (self._rng.choice(WORDS) for _ in range(self._rng.randrange(4)))
        redirection = self._rng.choice(REDIRECTIONS) if self._rng.random() < 0.25 else ""
        return " ".join((self._rng.choice(NAMES), *words)) + redirection

    def _mutated(self, line: str) -> str:
        for _ in range(self._rng.choice((0, 1, 1, 2, 3))):
            at = self._rng.randrange(len(line) + 1)
            gone = self._rng.choice((0, 0, 0, 1, 1, 3))
            put = self._rng.choice((*HOSTILE_PIECES, "", "", "", ""))
            line = line[:at] + put + line[at + gone :]
        return line


def test_a_line_that_is_tried_writes_nothing_outside_its_room(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    if not confined(room):
        pytest.skip("the system lets us confine nothing")
    [traced] = trace("sh", [f"ls > inside; ls > {tmp_path}/outside"], room)
    assert traced.written == {f"{traced.folder}/inside"}
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(("shell", "count"), [("bash", 1_400), ("dash", 600)])
def test_a_real_shell_runs_what_is_listed(shell: str, count: int, tmp_path: Path) -> None:
    _check(shell, Lines(SEED + count).plain(count), tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("shell", ["bash", "dash", "zsh"])
@pytest.mark.parametrize("number", range(10))
def test_a_real_shell_runs_what_is_listed_of_many_lines(
    shell: str, number: int, tmp_path: Path
) -> None:
    _check(shell, Lines(SEED + 1 + number).plain(5_000), tmp_path)


def _check(shell: str, lines: dict[str, Reading], room: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    traces = trace(shell, list(lines), room)
    wrong = {
        line: why for line, t in zip(lines, traces, strict=True) if (why := _wrong(lines[line], t))
    }
    assert wrong == {}, f"seed {SEED}"
    certain = [
        (line, seen)
        for line, seen in zip(lines, traces, strict=True)
        if _is_certain(shell, line, lines[line], seen)
    ]
    assert len(certain) > len(lines) / 8
    missing = {line: seen.ran for line, seen in certain if not _is_all(lines[line], seen)}
    assert missing == {}, f"seed {SEED}"


def _wrong(reading: Reading, seen: Trace) -> str | None:
    """What was done that is not listed."""
    runs = [(_name(run[-1].argv), _real(seen, run[-1].folder)) for run in reading.runs]
    # A shell that is given a name looks for a script in PATH, where the tracers are.
    scripts = [
        (argv[1:], folder) for argv, folder in runs if argv[0] in ("bash", "sh", "dash", "zsh")
    ]
    listed = {*runs, *scripts}
    written = {_real(seen, path) for path in reading.writes}
    ran = [each for each in seen.ran if each not in listed]
    wrote = [each for each in seen.written if _real(seen, each) not in written]
    return f"{ran=} {wrote=} {listed=}" if ran or wrote else None


def _is_certain(shell: str, line: str, reading: Reading, seen: Trace) -> bool:
    """Whether nothing fails on the way, so that all of it runs, each once."""
    folders = {run[-1].folder for run in reading.runs}
    may_fail = "||" in line or (shell == "zsh" and "time" in line)
    return (
        all(_is_traced(shell, run) for run in reading.runs)
        and not may_fail
        and not reading.reads
        and all(os.path.isdir(_real(seen, each)) for each in folders)
        and (len(folders) == 1 or "cd" not in line)
        and {_real(seen, each) for each in reading.writes} <= set(seen.written)
    )


def _is_traced(shell: str, run: tuple[PlainCommand, ...]) -> bool:
    """Whether it succeeds and says so. Builtins do where they are disabled: in the shell itself."""
    disabled = BUILTINS if shell == "bash" and len(run) == 1 else ()
    return run[-1].argv[0] in (*PROGRAMS[:-1], *disabled)


def _is_all(reading: Reading, seen: Trace) -> bool:
    return Counter(run[-1].argv for run in reading.runs) == Counter(argv for argv, _ in seen.ran)


def _name(argv: tuple[str, ...]) -> tuple[str, ...]:
    return (argv[0].rpartition("/")[2], *argv[1:])


def _real(seen: Trace, path: str) -> str:
    return os.path.realpath(os.path.join(seen.folder, path))
