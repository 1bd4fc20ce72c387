"""Ways to get more done than a rule allows: none may be answered with an allow."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.host.claims.claim_reader import read_claim
from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.rules.policy import decide
from dragoman.host.rules.rule import Rule

RULES = (
    Rule(effect="allow", operation="execute", argv=("npm", "test")),
    Rule(effect="allow", operation="execute", argv=("ls",)),
    Rule(effect="allow", operation="execute", argv_prefix=("git",)),
    Rule(effect="allow", operation="execute", argv_prefix=("cargo", "run")),
    Rule(effect="allow", operation="execute", argv_prefix=("bash", "-c")),
    Rule(effect="allow", operation="execute", argv_prefix=("env",)),
    Rule(effect="allow", operation="write", path="src/**"),
    Rule(effect="allow", operation="read", path="/usr/include/*.h"),
    Rule(effect="allow", operation="fetch", host="*.example.com"),
    Rule(effect="allow", operation="fetch", host="example.org"),
    Rule(effect="allow", operation="mcp", tool="fs_read"),
    Rule(effect="allow", agent="trusted"),
)
ROOTS = ("/ws",)


def is_allowed(access: Access) -> bool:
    return decide(access, RULES, now=0, session_id="s", project="/ws").effect == "allow"


def line(text: str) -> Access:
    return terminal_access(text, agent="demo", cwd="/ws", roots=ROOTS)


def argv(*words: str, cwd: str = "/ws", env: bool = False) -> Access:
    return terminal_access(words[0], words[1:], agent="demo", cwd=cwd, roots=ROOTS, env=env)


def write(path: str) -> Access:
    return file_access("write", path, agent="demo", roots=ROOTS)


def read(path: str) -> Access:
    return file_access("read", path, agent="demo", roots=ROOTS)


def fetch(*hosts: str) -> Access:
    return Access(operation="fetch", agent="demo", hosts=hosts)


def mcp(tool: str | None) -> Access:
    return Access(operation="mcp", agent="demo", tool=tool)


def claim(kind: str | None, raw: Any = None, **more: Any) -> Access:
    return read_claim(kind, raw, agent="demo", cwd="/ws", roots=ROOTS, home="/home/me", **more)


LINES = (
    # more than one command
    "git; rm -rf x",
    "git status; rm x",
    "git status;rm x",
    "git status && rm x",
    "git status || rm x",
    "git status & rm x",
    "git status &",
    "git status | sh",
    "git status |& sh",
    "git status\nrm x",
    "git status\r\nrm x",
    "git status\rrm x",
    "git status \\\n; rm x",
    "npm test\n",
    "npm test;",
    "npm test #",
    "npm test # ; rm x",
    "\nnpm test",
    "ls\n\nrm x",
    "(git status; rm x)",
    "{ git status; rm x; }",
    "! git status",
    "git status;;",
    "git\vstatus",
    "git\fstatus",
    "git status\0rm x",
    # substitution
    "git $(rm x)",
    "git `rm x`",
    "git ${IFS}status",
    "git $HOME",
    "git $'\\x3b' rm",
    'git "$(rm x)"',
    'git "`rm x`"',
    'git "$HOME"',
    "git $((1+1))",
    "git <(rm x)",
    "git >(rm x)",
    "git ${x:-$(rm x)}",
    "git $[1+1]",
    "g$()it status",
    "$(echo git) status",
    "`echo ls`",
    # redirects
    "git status > /etc/passwd",
    "git status >> ~/.bashrc",
    "git log >|x",
    "git status 2>x",
    "git status &>x",
    "git apply < /tmp/patch",
    "git apply <<EOF",
    "git apply <<< x",
    "ls>x",
    # expansion
    "git *",
    "git ?",
    "git [a-z]",
    "git {status,log}",
    "git ~/x",
    "git ~root",
    "git add a*b",
    "ls ~",
    # quoting tricks
    "git 'a;b'",
    'git "a;b"',
    'git "a|b"',
    "git 'a&b'",
    "git '$(rm x)'",
    "git \\; rm x",
    "git \\\nrm x",
    "git 'unterminated",
    'git "unterminated',
    "git 'it''s' \"x",
    'git "a\\"; rm x; \\""',
    'g"i"t\\ status',
    "l\\s",
    "'ls;'",
    '"npm test"',
    "'npm' 'test;'",
    # assignments and environments
    "PATH=/tmp git status",
    "LD_PRELOAD=/tmp/x.so npm test",
    "GIT_SSH_COMMAND=sh git fetch",
    "A=1 B=2 ls",
    "A+=1 ls",
    "'A'=1 ls",
    "A=1",
    # other programs, other words
    "npm test x",
    "npm  'test '",
    "npm",
    "npm test --",
    "npmtest",
    "Npm test",
    "NPM TEST",
    "npm Test",
    "./ls",
    "/tmp/ls",
    "../ls",
    "ls .",
    "gitk",
    "git-evil",
    "/tmp/git status",
    "./git status",
    "GIT status",
    "cargo",
    "cargo build",
    "cargo  'run;'",
    "sudo git status",
    "command git status",
    "exec git status",
    "",
    " ",
    # look-alikes
    "git；rm x",
    "git status｜sh",
    "git\u00a0status",
    "git\u2003status",
    "g\u0456t status",
    "git\u200b status",
    "git\u202e status",
    "gіt status",
    "ｇｉｔ status",
    "ls\u00ad",
    "git \ud800",
    "npm te\u017ft",
    # parts of a line
    "git status && git log && rm x",
    "git status 2>&1 | tee x",
    "cd src && rm x",
    "cd /etc && ls",
    "cd .. && ls",
    "cd src; ls",
    "cd src || ls",
    "ls && cd /tmp && npm test",
    "ls > src/a > b",
    "ls > src/../a",
    "ls > src/.envrc",
    "ls > src/a; npm test > src/.git/config",
    "cd src && ls > ../a",
    "ls < /etc/passwd",
    "bash -c 'ls; rm x'",
    "bash -lc 'cd / && ls'",
    "timeout 5 rm x",
    "timeout 5 bash -c 'ls && rm x'",
    "nice -n 5 ls x",
    "time ls && time rm x",
    "NO_COLOR=1 rm x",
    "env PATH=. ls | ls",
    "ls && git 'a;b'",
    "ls && git '$(rm x)'",
    "ls && bash -c 'a; b'",
    "ls && eval ls",
    "ls && . ls",
    "ls && export PATH",
    # shells behind an allowed prefix
    "env bash -c 'a' | sh",
    "bash -c $'rm x'",
)
ARGVS = (
    argv("bash", "-c", "git; rm x"),
    argv("bash", "-c", "rm x > y"),
    argv("bash", "-c", "$(id)"),
    argv("bash", "-c", "a\nb"),
    argv("env", "bash", "-c", "a; b"),
    argv("env", "-i", "/bin/sh", "-ec", "a && b"),
    argv("env", "zsh", "-lc", "a | b"),
    argv("env", "fish", "--command=a; b"),
    argv("npm", "test", env=True),
    argv("git", "status", env=True),
    argv("npm", "test", cwd="/tmp"),
    argv("npm", "test", cwd="/"),
    argv("npm", "test", cwd="/wsx"),
    argv("npm", "test", cwd="/ws/.."),
    argv("npm", "test", cwd="/ws/../etc"),
    argv("npm test", "x"),
    argv("npm", "test;"),
    argv("npm", "test", ""),
    argv("", "npm", "test"),
    argv("ls", ""),
    argv("cargo", "run;x"),
    argv("cargo run", "x"),
)
WRITES = (
    "/ws/src/../x",
    "/ws/src/./../../ws/x",
    "/ws/src/..",
    "/ws//src/../../etc/x",
    "/ws/src/../../etc/passwd",
    "/ws/SRC/a",
    "/ws/Src/a",
    "/ws/srcx/a",
    "/ws/xsrc/a",
    "/ws/src.bak",
    "/ws/other/src/a",
    "/ws/src\u200b/a",
    "/ws/ѕrc/a",
    "/src/a",
    "/wsx/src/a",
    "/ws/../ws2/src/a",
    "/",
    "/ws",
    "/ws/src/.git/hooks/pre-commit",
    "/ws/src/.GIT/hooks/pre-commit",
    "/ws/src/.git\u200c/config",
    "/ws/src/.git./config",
    "/ws/src/.git /config",
    "/ws/src//.git//config",
    "/ws/src/x/../.git/config",
    "/ws/src/.git",
    "/ws/src/.github/workflows/x.yml",
    "/ws/src/.GitHub/Workflows/x.yml",
    "/ws/src/.bashrc",
    "/ws/src/.BASHRC",
    "/ws/src/.ssh/authorized_keys",
    "/ws/src/.envrc",
    "/ws/src/.ENVRC",
    "/ws/src/.vscode/tasks.json",
    "/ws/src/．git/config",
    "/ws/src/.gıt/../.git/config",
    "/ws/src/" + "a/" * 3000 + "x",
)
READS = (
    "/usr/include/../../etc/x.h",
    "/usr/include/sys/x.h",
    "/usr/include/x.h/y",
    "/usr/include/x.H",
    "/usr/include/x.hh",
    "/usr/include",
    "/wsx/a",
    "/ws/../etc/passwd",
    "/etc/passwd",
    "/ws/../wsx/a",
)
OTHERS = (
    fetch(),
    fetch("example.com"),
    fetch("evil-example.com"),
    fetch("a.example.com.evil.net"),
    fetch("a.example.com", "evil.net"),
    fetch("example.org.evil.net"),
    fetch("ехample.org"),
    mcp(None),
    mcp("fs_read2"),
    mcp("FS_READ"),
    mcp("fs_read "),
    Access(operation="other", agent="untrusted"),
    Access(operation="other", agent="trusted2"),
    Access(operation="other", agent="Trusted"),
    Access(operation="other", agent="trusted\n"),
)
CLAIMS = (
    claim("read", {"path": "/etc/passwd"}),
    claim("read", {"path": "../etc/passwd"}),
    claim("read", {"path": "a", "other": "/etc/passwd"}),
    claim("read", {"path": "a", "nested": [{"deep": "~/.ssh/id_rsa"}]}),
    claim("read", {"path": "a", "command": "cat a"}),
    claim("read", {"path": "a", "x": {"CMD": ["rm", "x"]}}),
    claim("read", {"path": "a", "x": {"shell-command": "rm x"}}),
    claim("read", {"path": "a", "ｃｏｍｍａｎｄ": "rm x"}),
    claim("read", '{"path": "a", "command": "rm x"}'),
    claim("read", {"path": "a", "arguments": '{"cmd": "rm x"}'}),
    claim("read", {"path": "a"}, locations=("/etc/passwd",)),
    claim("read", {"path": "a"}, diff_paths=("/ws/b",)),
    claim("read", {"uri": "file:///etc/passwd"}),
    claim("read", {"uri": "file://server/ws/a"}),
    claim("read", {"uri": "FILE:/etc/passwd"}),
    claim("read", {"url": "https://evil.net", "path": "a"}),
    claim("read", {"path": "a\0b"}),
    claim("read", {"path": "file:///ws/%2e%2e/etc/passwd"}),
    claim("read", {}),
    claim("read", {"path": "a", "x": [0] * 30_000}),
    claim("search", {"pattern": "/etc/*", "path": "."}),
    claim("Read", {"path": "a"}),
    claim("other", {"path": "a"}),
    claim(None, {"path": "a"}),
    claim("edit", {"path": "src/a", "command": "rm x"}),
    claim("edit", {"path": "src/../a"}),
    claim("edit", {"path": "src/a", "new_path": "a"}),
    claim("edit", {"changes": {"/etc/x": {}, "/ws/src/a": {}}}),
    claim("edit", {"text": "no path at all"}),
    claim("move", {"from": "src/a", "to": "a"}),
    claim("move", {"source": "src/a", "destination": "../a"}),
    claim("delete", {"path": "src/../.."}),
    claim("execute", {"command": "npm test", "args": [";", "rm"]}),
    claim("execute", {"command": "npm", "args": ["test", "x"]}),
    claim("execute", {"command": "npm", "args": ["test", {"x": 1}]}),
    claim("execute", {"command": ["npm", "test", 1]}),
    claim("execute", {"command": ["npm", "test"], "script": "rm x"}),
    claim("execute", {"command": ["npm", "test"], "env": {"PATH": "/tmp"}}),
    claim("execute", {"command": ["npm", "test"], "cwd": "/tmp"}),
    claim("execute", {"command": ["npm", "test"], "workingDirectory": ".."}),
    claim("execute", {"command": ["npm", "test"], "directory": "/tmp"}),
    claim("execute", {"command": ["git", "a; rm x"]}),
    claim("execute", {"command": ["git", "$(rm x)"]}),
    claim("execute", {"command": "git 'a; rm x'"}),
    claim("execute", {"commands": ["git status", "rm x"]}),
    claim("execute", {"command": {"text": "npm test"}}),
    claim("execute", {"command": '["npm", "test"]'}),
    claim("execute", {"title": "npm test"}),
    claim("fetch", {"url": "https://docs.example.com"}),
    claim("switch_mode", {"path": "a"}),
)
BYPASSES: tuple[Access, ...] = (
    *map(line, LINES),
    *ARGVS,
    *map(write, WRITES),
    *map(read, READS),
    *OTHERS,
    *CLAIMS,
)
# The positive control: what the rules are there for is allowed.
LEGITIMATE: tuple[Access, ...] = (
    line("npm test"),
    line("  npm\ttest "),
    line("'npm' \"test\""),
    line("ls"),
    line("git"),
    line("git status"),
    line("git commit -m 'fix it, at last!'"),
    line('git commit -m "it\'s done"'),
    line("git log --format=%h a/b.c..d/e@{1}".replace("@{1}", "")),
    line("cargo run --release"),
    line("git status 2>&1"),
    line("cd src && ls"),
    line("cd /ws/src && npm test; git status | git log >/dev/null"),
    line("ls && npm test > src/out.txt 2>> 'src/err.txt' < in.txt"),
    line("cd src && git log > a"),
    line("bash -lc 'ls && npm test'"),
    line("timeout 60 npm test 2>&1"),
    line("NO_COLOR=1 time -p npm test || git status"),
    line("git diff HEAD~1"),
    argv("npm", "test"),
    argv("npm", "test", cwd="/ws/sub/../src"),
    argv("git", "commit", "-m", "a; b"),
    argv("bash", "-c", "npm test"),
    argv("bash", "-lc", "cd src && npm test && ls"),
    argv("timeout", "5", "sh", "-c", "git status | git log"),
    write("/ws/src/a"),
    write("/ws/src/a b/ü/.hidden"),
    write("/ws//src/./a/"),
    write("/ws/src/x/../a"),
    write("/ws/src/git/hooks.md"),
    read("/usr/include/stdio.h"),
    read("/ws/.git/config"),
    fetch("a.example.com"),
    fetch("A.B.EXAMPLE.COM"),
    mcp("fs_read"),
    Access(operation="other", agent="trusted"),
    claim("read", {"path": "a"}),
    claim("search", {"pattern": "x", "path": "."}),
    claim("edit", {"file_path": "src/a", "new_string": "/etc/passwd; rm -rf /"}),
    claim("move", {"from": "src/a", "to": "src/b"}),
    claim("execute", {"command": "npm test", "description": "run the tests"}),
    claim("execute", {"command": "npm", "args": ["test"]}),
    claim("execute", {"command": "cd src && npm test 2>&1 | git log"}),
    claim("execute", {"command": ["bash", "-lc", "git status; ls"]}),
    claim("execute", {"command": ["git", "commit", "-m", "two words"], "cwd": "/ws/src"}),
)


def test_there_are_enough_bypasses() -> None:
    assert len(LINES) >= 100
    assert len(BYPASSES) >= 150


@pytest.mark.parametrize("number", range(len(BYPASSES)))
def test_no_bypass_is_allowed(number: int) -> None:
    assert not is_allowed(BYPASSES[number]), BYPASSES[number]


@pytest.mark.parametrize("number", range(len(LEGITIMATE)))
def test_what_the_rules_are_for_is_allowed(number: int) -> None:
    assert is_allowed(LEGITIMATE[number]), LEGITIMATE[number]


@pytest.mark.parametrize("text", LINES)
def test_a_bare_execute_rule_covers_every_line_but_those_that_write_protected_files(
    text: str,
) -> None:
    rule = Rule(effect="allow", operation="execute")
    decision = decide(line(text), (rule,), now=0, session_id="s", project="/ws")
    protected = any(name in text for name in (".bashrc", ".envrc", ".git/config"))
    assert decision.effect == ("ask" if protected else "allow")
