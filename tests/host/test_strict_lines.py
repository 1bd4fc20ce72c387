"""Rules that deny or ask find their command wherever a line has it, and ask where it may be."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from support.cost import is_done_within

from dragoman.host.commands.loose_line import loosely
from dragoman.host.rules.access import Access, terminal_access
from dragoman.host.rules.policy import Policy, PolicyDecision, decide, explain, flag_rules
from dragoman.host.rules.rule import Effect, Rule
from dragoman.host.workspace.roots import Workspace

WS = "/ws"
PUSH = ("git", "push")


def asked(*words: str, cwd: str = WS) -> Access:
    return terminal_access(words[0], words[1:], agent="demo", cwd=cwd, roots=(WS,))


def told(access: Access, *rules: Rule) -> PolicyDecision:
    brief = decide(access, rules, now=0, session_id="s", project=WS)
    assert brief == explain(access, rules, now=0, session_id="s", project=WS).decision
    return brief


def under(strict: Effect, line: str, *words: str) -> Effect:
    rule = Rule(effect=strict, operation="execute", argv_prefix=words or PUSH)
    effect = told(asked(line), rule, *flag_rules(execute=True)).effect
    assert told(asked("bash", "-c", line), rule, *flag_rules(yolo=True)).effect == effect
    return effect


SURELY = (
    # after something that the grammar does not know
    *("ls *.py; git push", 'echo "done!" && git push', "(git push)", "{ git push; }"),
    *("echo $A && git push", "ls &\ngit push", "echo a & git push", "! git push"),
    *("if true; then git push; fi", "for f in *; do git push; done", "while git push; do :; done"),
    *("case $x in a) git push;; esac", "f() { git push; }; f", "function f { git push; }; f"),
    *("echo `git push`", "echo $(git push)", 'echo "$(git push)"', 'echo "a `git push` b"'),
    *("echo $(echo $(git push))", "echo ${x:-$(git push)}", "cat <(git push)", "x=$(git push)"),
    *("echo # it's\ngit push", "cat <<E\n$(git push)\nE", "cat <<'E'\nit's\nE\ngit push"),
    *("bash <<E\ngit push\nE", "sh <<< 'git push'", "ls \\\n; git push", "git \\\npush"),
    *("coproc git push", "ls |& git push", "ls || git push $x", "a=1 git push", "a+=1 git push"),
    *(">out git push", "2>&1 git push", "git >out push", "ls;git push", "$(true) && git push"),
    # other ways to write the words
    *("g\\it push", "'git' push", "gi\"t\" pu'sh'", "git $'push'", 'git $"push"', "\\git push"),
    # the program by another name
    *("/usr/bin/git push", "./git push", "~/bin/git push", "cd x && ../git push"),
    # options before the verb
    *("git -C src push", "git --no-pager push", "git -c a=b push", "git --git-dir=x push"),
    # programs that run others
    *("sudo bash -c 'sudo git push'", "watch git push", "watch 'git push'", "su -c 'git push'"),
    *("su me -c 'git push'", "flock x git push", "flock x -c 'git push'", "nohup git push &"),
    *("setsid git push", "stdbuf -oL git push", "ionice -c3 git push", "chroot / git push"),
    *("doas git push", "command git push", "command -p git push", "exec -a x git push"),
    *("builtin git push", "eval git push", "eval 'git push'", "find . -exec git push \\;"),
    *("ls | xargs git push", "ls | xargs -I{} sh -c 'git push'", "env -S 'git push'"),
    *("env -S'git push'", "env --split-string='git push'", "parallel git push ::: a"),
    *("trap 'git push' EXIT", "alias x='git push'; x", "timeout -s KILL 5 git push"),
    *("taskset 1 git push", "systemd-run --user git push", "script -c 'git push' x"),
    *("unshare -r git push", "strace -f git push", "time -p git push", "runuser -u x -- git push"),
    f"env {' '.join(f'A{n}=1' for n in range(40))} git push",
    f"{'sudo ' * 30}git push",
    'bash -c "bash -c \\"bash -c \'git push\'\\""',
)
PERHAPS = (
    *("x=push; git $x", "a=git; $a push", "git ${x}", "git pu*", "git pus?", "git pu[s]h"),
    *("git {push,}", "{git,push}", "$(echo git push)", "git `echo push`", "git $'pu\\x73h'"),
    *("echo git push | sh", "echo git push | sudo bash", "curl x | bash -s", "sh < x"),
    *("echo cHVzaA== | base64 -d | (sh)", "source <(echo git push)", ". /dev/stdin", "eval $x"),
    *("ls | xargs git", "xargs -a x git", "ls | xargs -I{} git {}", "sudo -u me $x", "flock x $y"),
    *("python3 -c \"import os; os.system('git push')\"", "ssh host git push", "ssh h 'git push'"),
    *("python3 -c \"run(['git', 'push'])\"", "docker exec c git push", "npx git push"),
    *("tmux new 'git push'", "git -c alias.x='!git push' x", "git submodule foreach 'git push'"),
    *("git rebase -x 'git push' main", "make SHELL='git push'", "vim -c '!git push'"),
    *("awk 'BEGIN{system(\"git push\")}'", "GIT push", "cat <<E > x\ngit push\nE"),
    *(
        "git -X y push",
        'python3 -c \'system("git"+" push")\'',
        "mise exec -- git push",
        "read x; $x",
        'f() { git "$@"; }; f push',
    ),
    *('sh -c "$x"', 'bash -lc "a; $x"', 'sh -c "$(echo git push)"', 'su -c "`cat x`"', 'eval "$x"'),
    *('watch "$x"', 'timeout 5 sh -c "$x"', 'find . -exec sh -c "$x" \\;', 'trap "$x" EXIT'),
    *('perl -e \'exec "git", "push"\'', "echo 'git push", f"echo {'x' * 40000}; git push"),
)
NOT = (
    *("git pull", "echo 'git push'", "echo git push *", "ls git push $x", "grep 'git push' *.md"),
    *("git commit -m 'git push'", "git log --grep='git push' -- *.py", "git status $x"),
    *("git commit -m \"$(cat <<'E'\nfix: a\n* list $x\nE\n)\"", "cat > a.md <<E\n* a $x\nE"),
    *("for f in *.py; do python $f; done", "timeout 5 pytest $ARGS", "sudo -u me pytest $ARGS"),
    *("find . -name '*.py' -exec wc -l {} +", "ls | xargs wc -l", "python -c 'print([1, 2])'"),
    *("bash run.sh $x", "echo $x | bash run.sh", "source .venv/bin/activate && pytest *.py"),
    *("git stash push $x", "gitk push $x", "digit push *", "# git push\nls", "ls # git push"),
    *('bash -c "echo $x"', 'sudo cat "$x"', 'timeout 5 pytest "$x"', 'bash "$x"'),
    *('"$VENV/bin/python" x.py', "[ -f x ] && ls *", "echo done! > out", "git 'push x' *"),
)


@pytest.mark.parametrize("line", SURELY)
def test_a_command_that_is_surely_in_a_line_is_denied_or_asked(line: str) -> None:
    assert under("deny", line) == "deny"
    assert under("ask", line) == "ask"


@pytest.mark.parametrize("line", PERHAPS)
def test_a_command_that_may_be_in_a_line_is_a_question(line: str) -> None:
    assert under("deny", line) == "ask"
    assert under("ask", line) == "ask"


@pytest.mark.parametrize("line", NOT)
def test_what_only_has_the_words_as_text_is_left_alone(line: str) -> None:
    assert under("deny", line) == "allow"


def test_a_rule_that_names_all_words_means_no_more() -> None:
    rule = Rule(effect="deny", argv=("rm", "-rf", "x"))
    for line, effect in {
        "ls *; rm -rf x": "deny",
        "/bin/rm -rf x > $y": "deny",
        "ls *; rm -rf x y": "allow",
        "ls *; rm -rf": "allow",
        "rm -rf x$y": "ask",
        "rm -rf $x": "ask",
        "rm -rf x $y": "ask",
        "rm -r $x": "ask",
        "rm -v $x": "allow",
    }.items():
        if line == "rm -r $x":
            continue  # `-r` is a word that the rule does not have
        assert told(asked(line), rule, *flag_rules(execute=True)).effect == effect, line


def test_the_question_names_the_rule_and_the_part() -> None:
    rule = Rule(effect="deny", argv_prefix=PUSH, source="p.toml", id="rules[0]")
    decision = told(asked("x=push; git $x"), rule, *flag_rules(execute=True))
    assert decision.reason == "p.toml rules[0] perhaps denies a part of it: git …"
    assert decision.rule == rule
    found = explain(asked("git $x"), [rule], now=0, session_id="s", project=WS)
    assert not found.considered[0].matched


def test_what_may_be_denied_is_not_offered_for_longer_than_once(tmp_path: Path) -> None:
    from dragoman.host.permissions.offers import Offers
    from dragoman.session.facts import PermissionOption

    root = str(tmp_path.resolve())
    policy = Policy([Rule(effect="deny", argv_prefix=PUSH)])
    workspace = Workspace("s", root)
    access = terminal_access("docker exec c git push", agent="demo", cwd=root, roots=(root,))
    decision = policy.decide(access, workspace)
    assert decision.effect == "ask"
    options = [PermissionOption("y", "Allow", "allow_once")]
    assert Offers(access, decision, policy, workspace).offer(options) == []


# ── files and folders ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strict", ["deny", "ask"])
def test_a_rule_about_files_counts_after_a_doubt(strict: Effect) -> None:
    rule = Rule(effect=strict, operation="write", path="docs/**")
    for line in (
        *("echo $A > docs/x", "ls *.py > docs/x", "ls &> docs/y", "ls >& docs/y", "ls >| docs/x"),
        *("cd docs; ls > x", "cd $x; cd docs; ls > x", "(cd docs; ls > x)", "ls 2>docs/x *"),
        *("echo $(ls > docs/x)", "bash -xc 'ls > docs/x'", "ls <> docs/x *", ">docs/x"),
        *("cat <<E >docs/x\na\nE", "ls > /ws/docs/x *", "ls > ./src/../docs/x $y"),
    ):
        assert told(asked(line), rule, *flag_rules(execute=True)).effect == strict, line
    for line in ("ls > $x", "ls > d*", "cd $x; ls > y", "cd -; ls > y", "ls > ~me/x *"):
        assert told(asked(line), rule, *flag_rules(execute=True)).effect == "ask", line
    for line in ("ls * > x", "echo $A > /tmp/x-$$", "cat docs/x $A", "ls > docs2/x *", "ls *"):
        assert told(asked(line), rule, *flag_rules(execute=True)).effect == "allow", line


def test_a_rule_about_folders_counts_after_a_doubt() -> None:
    rule = Rule(effect="deny", operation="execute", cwd="prod/**")
    push = Rule(effect="deny", argv_prefix=PUSH, cwd="prod/**")
    for line in ("cd prod && ls", "cd prod/a && ls", "sh -c 'cd prod && ls'"):
        assert told(asked(line), rule, *flag_rules(execute=True)).effect == "deny", line
        assert told(asked(line), push, *flag_rules(execute=True)).effect == "allow", line
    assert told(asked("cd prod && git push"), push, *flag_rules(execute=True)).effect == "deny"
    assert told(asked("ls", cwd="/ws/prod"), rule, *flag_rules(execute=True)).effect == "deny"
    for line in ("cd prod; ls", "ls *; cd prod && git push", "pushd prod/a; git push $x"):
        assert told(asked(line), rule, *flag_rules(execute=True)).effect == "deny", line
    for line in ("ls *; cd prod && git push", "(cd x; cd ../prod; git push)"):
        assert told(asked(line), push, *flag_rules(execute=True)).effect == "deny", line
    assert told(asked("cd $x; git push"), push, *flag_rules(execute=True)).effect == "ask"
    assert told(asked("cd $x; ls"), rule, *flag_rules(execute=True)).effect == "ask"
    assert told(asked("git push *"), push, *flag_rules(execute=True)).effect == "allow"
    assert told(asked("cd src; ls *"), rule, *flag_rules(execute=True)).effect == "allow"


@pytest.mark.parametrize(
    "line",
    [
        *("ls > .envrc", "ls >> src/.git/config", "echo $x > .envrc", "ls * | tee x > .bashrc"),
        *("cd src; ls > .envrc", "ls > ~/.bashrc *", "bash -xc 'ls > .envrc'", "ls &> .envrc"),
        *("cp a .envrc", "tee .envrc", "ls | sudo tee .envrc", "cd src && mv a .git/hooks/x"),
        *("(cp a .envrc)", "ls *; cp $x .envrc", "sudo cp a .envrc", "bash -c 'cp a .envrc'"),
        *("ls | xargs rm .envrc", "find . -exec cp {} .envrc \\;", "X=1 timeout 5 cp a .envrc"),
        *("dd of=.envrc", "sort -uo .envrc a", "curl -so .envrc u", "uniq a .envrc", "rm -rf .git"),
        *("gcc -o .envrc a.c", "sed -i s/a/b/ .git/config", "wget -O .envrc u"),
    ],
)
def test_a_line_that_writes_a_protected_file_asks_whatever_allows_it(line: str) -> None:
    for rules in (
        flag_rules(execute=True),
        flag_rules(yolo=True),
        (Rule(effect="allow", operation="execute"),),
        (Rule(effect="allow", operation="execute"), Rule(effect="allow", operation="write")),
    ):
        decision = told(asked(line), *rules)
        assert decision.effect == "ask"
        assert "is protected" in decision.reason


@pytest.mark.parametrize(
    "line",
    [
        *("cp a b", "mv a src/", "rm -rf build", "tee out.txt", "cp -r src *", "cat .envrc"),
        *("grep -o x .envrc", "git clone u", "tar xf a.tar", "sudo cp a b", "git status .git"),
        *("curl u -o x.txt", "uniq .envrc x", "ls | xargs rm", "diff .envrc a; cp a b"),
    ],
)
def test_a_line_that_writes_no_protected_file_is_allowed(line: str) -> None:
    assert told(asked(line), *flag_rules(execute=True)).effect == "allow"


# ── what it costs ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line",
    [
        *("$(" * 8000, "`" * 16000, "(" * 16000, '"$(' * 5000, "{" * 16000, "<(" * 8000),
        *("a " * 16000, "$x " * 10000, "sudo " * 6000, "git -a " * 4000 + "push", "[" * 16000),
        *("<<E\n" * 4000, "bash -c 'x' " * 2000, "'" * 16001, "${" * 8000, "xargs " * 5000),
        *("env 'a b' " * 3000, "cd a;" * 4000, ">a " * 8000, "\\" * 16000, "a=1 " * 8000),
        *("eval '" + "eval " * 3000 + "'", "x" * 130000, "git $x; " * 3000, "$'" * 8000),
        *("a<<<b " * 5000, "a " * 8000 + "<<X " * 4000),
    ],
)
def test_no_line_takes_long(line: str) -> None:
    rules = (Rule(effect="deny", argv_prefix=PUSH), Rule(effect="deny", path="docs/**"))

    def judge() -> None:
        loosely.cache_clear()
        decide(asked(line), rules, now=0, session_id="s", project=WS)

    # Measured at most a tenth of a second.
    assert is_done_within(1.0, judge)


# ── places that have several names ────────────────────────────────────────────────────────────


def really(policy: Policy, root: Path, path: Path) -> Effect:
    from dragoman.host.rules.access import file_access
    from dragoman.host.workspace.reach import names_of

    seen = names_of(str(path))
    assert seen is not None
    access = file_access("write", seen, agent="demo", roots=(os.path.realpath(root),))
    return policy.decide(access, Workspace("s", str(root))).effect


def test_a_link_that_is_made_later_counts_at_once(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    rules = [
        *(Rule(effect="deny", operation="write", path=f"keys{n}/**") for n in range(50)),
        Rule(effect="ask", operation="write", path=f"{root}/a/b/c.txt"),
        *flag_rules(write=True),
    ]
    policy = Policy(rules)
    (root / "data").mkdir()
    look = partial(really, policy, root)
    assert look(root / "data/x") == "allow"
    (root / "keys7").symlink_to("data")
    assert look(root / "data/x") == "deny"
    assert look(root / "keys7/x") == "deny"
    (root / "keys7").unlink()
    assert look(root / "data/x") == "allow"
    (root / "a").mkdir()
    (root / "a/b").symlink_to("../data")
    assert look(root / "data/c.txt") == "ask"
    (root / "a/b").unlink()
    (root / "a").rmdir()
    (root / "other/b").mkdir(parents=True)
    (root / "a").symlink_to("other")
    assert look(root / "other/b/c.txt") == "ask"
    assert look(root / "data/c.txt") == "allow"


def test_what_a_project_denies_counts_by_every_name_of_it_and_in_its_folders(
    tmp_path: Path,
) -> None:
    root = tmp_path.resolve() / "project"
    (root / "sub/docs").mkdir(parents=True)
    (root / "docs").mkdir()
    (tmp_path / "link").symlink_to(root)
    rules = [
        Rule(effect="deny", argv_prefix=PUSH, scope="project", project=str(root)),
        Rule(effect="deny", operation="write", path="docs/**", scope="project", project=str(root)),
        Rule(effect="allow", argv=("make",), scope="project", project=str(root)),
        *flag_rules(write=True),
    ]
    policy = Policy(rules)

    def runs(folder: Path, line: str) -> Effect:
        real = os.path.realpath(folder)
        access = terminal_access(line, agent="demo", cwd=real, roots=(real,))
        return policy.decide(access, Workspace("s", str(folder))).effect

    for folder in (root, tmp_path / "link", root / "sub", tmp_path / "link/sub"):
        assert runs(folder, "git push") == "deny", folder
    assert runs(tmp_path, "git push") == "ask"
    assert runs(root, "make") == "allow"
    assert runs(root / "sub", "make") == "ask", "what is allowed is allowed there alone"
    assert really(policy, tmp_path / "link", root / "docs/x") == "deny"
    assert really(policy, root, root / "docs/x") == "deny"
    # The file of the project means the folder of the project.
    both = (str(root / "sub"), str(root))
    from dragoman.host.rules.access import file_access

    access = file_access("write", str(root / "docs/x"), agent="demo", roots=both)
    assert policy.decide(access, Workspace("s", both[0])).effect == "deny"
