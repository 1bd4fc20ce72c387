"""Completion scripts, in the shells they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.command import COMMAND, Dragoman

from dragoman.host.rules.rule import Rule
from dragoman.store.open import open_rules


def shell(dragoman: Dragoman, name: str, program: str) -> str:
    """What a shell prints that has the completion for it."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    script = dragoman("completion", name)
    assert (script.code, script.err) == (0, "")
    path = dragoman.home / f"completion.{name}"
    path.write_text(script.out)
    done = subprocess.run(
        (name, "-c", program),
        cwd=dragoman.workspace,
        env=dragoman.env
        | {"SCRIPT": str(path), "PATH": f"{COMMAND.parent}:{dragoman.env['PATH']}"},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout


BASH = """
source "$SCRIPT"
at() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dragoman; echo "$*: ${COMPREPLY[*]}"; }
at dragoman ag
at dragoman agents d
at dragoman -a my
at dragoman --output j
at dragoman chat --yo
at dragoman agents doctor dem
at dragoman policy explain --operation w
at dragoman run --on-ask p
at dragoman --cwd fo
at dragoman completion f
at dragoman --session fi
at dragoman watch fi
at dragoman sessions show fi
at dragoman sessions fork --name my
at dragoman --fence =
at dragoman --fence = re
at dragoman chat --fence = a
at dragoman --fence of
"""


def test_bash_completes_commands_options_values_and_agents(dragoman: Dragoman) -> None:
    dragoman.write_settings({"agent_servers": {"my-own": {"command": "x"}}})
    (dragoman.workspace / "folder").mkdir()
    (dragoman.workspace / "food.txt").touch()
    assert dragoman("--session", "fix-it", "x", agent="quiet").code == 0
    assert shell(dragoman, "bash", BASH).split("\n")[:-1] == [
        "dragoman ag: agents",
        "dragoman agents d: default doctor",
        "dragoman -a my: my-own",
        "dragoman --output j: jsonl json",
        "dragoman chat --yo: --yolo",
        "dragoman agents doctor dem: demo",
        "dragoman policy explain --operation w: write",
        "dragoman run --on-ask p: prompt",
        "dragoman --cwd fo: folder",
        "dragoman completion f: fish",
        "dragoman --session fi: fix-it",
        "dragoman watch fi: fix-it",
        "dragoman sessions show fi: fix-it",
        "dragoman sessions fork --name my: ",
        "dragoman --fence =: off on ask require",
        "dragoman --fence = re: require",
        "dragoman chat --fence = a: ask",
        "dragoman --fence of: ",
    ]


RULES = """
source "$SCRIPT"
at() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dragoman; echo "$*: ${COMPREPLY[*]}"; }
at dragoman policy revoke aa
at dragoman policy revoke bb
at dragoman policy revoke cc
"""
RULES_OF_FISH = """
source $SCRIPT
echo (complete -C "dragoman policy revoke aa")
echo (complete -C "dragoman policy revoke " | sort)
echo (complete -C "dragoman sessions show fi" | string replace -r '\\t.*' '')
"""


def keep_rules(dragoman: Dragoman, *ids: str) -> None:
    stored = open_rules(dragoman.state)
    for rule_id in ids:
        stored.add(Rule(effect="allow", operation="execute", argv=("ls",), id=rule_id))
    stored.close()


def test_rules_complete_by_their_ids(dragoman: Dragoman) -> None:
    names = dragoman("policy", "list", "--names")
    assert (names.code, names.out) == (0, "")
    keep_rules(dragoman, "aa11", "bb22")
    assert dragoman("policy", "list", "--names").out == "aa11\nbb22\n"
    assert shell(dragoman, "bash", RULES).split("\n")[:-1] == [
        "dragoman policy revoke aa: aa11",
        "dragoman policy revoke bb: bb22",
        "dragoman policy revoke cc: ",
    ]


def test_fish_completes_rules_and_sessions(dragoman: Dragoman) -> None:
    keep_rules(dragoman, "aa11", "bb22")
    assert dragoman("--session", "fix-it", "x", agent="quiet").code == 0
    found = shell(dragoman, "fish", RULES_OF_FISH)
    assert found.split("\n")[:-1] == ["aa11", "aa11 bb22", "fix-it"]


def test_zsh_completes_sessions_and_keeps_colons(dragoman: Dragoman) -> None:
    script = dragoman("completion", "zsh").out
    assert "'--session[" in script
    assert ":NAME:_dragoman_sessions'" in script
    assert "'--fence=-[" in script
    assert "::={off,on,ask,require}:(off on ask require)'" in script
    assert r"postgresql\://user@host/database (default\: $DRAGOMAN_STORE" in script


FISH = """
source $SCRIPT
for line in "dragoman ag" "dragoman agents d" "dragoman -a my" "dragoman chat --yo" \
        "dragoman policy explain --operation w" "dragoman completion f"
    echo "$line:" (complete -C "$line" | string replace -r '\\t.*' '')
end
"""


def test_fish_completes_commands_options_values_and_agents(dragoman: Dragoman) -> None:
    dragoman.write_settings({"agent_servers": {"my-own": {"command": "x"}}})
    assert shell(dragoman, "fish", FISH).split("\n")[:-1] == [
        "dragoman ag: agents",
        "dragoman agents d: default doctor",
        "dragoman -a my: my-own",
        "dragoman chat --yo: --yolo",
        "dragoman policy explain --operation w: write",
        "dragoman completion f: fish",
    ]


def test_zsh_understands_its_script(dragoman: Dragoman) -> None:
    assert shell(dragoman, "zsh", 'zsh -n "$SCRIPT" && echo sound') == "sound\n"


ZSH = r"""
zmodload zsh/zpty
typed() {
    zpty it zsh -f -i
    zpty -w it "PROMPT= RPROMPT= PS2=; fpath=($FPATH_FIRST \$fpath)"
    zpty -w it "unsetopt beep prompt_sp prompt_cr"
    zpty -w it "autoload -U compinit; compinit -u -D; bindkey -e; ${SOURCED:+source $SCRIPT}"
    # One match is written out, of several what they share; then the line is printed.
    zpty -w it 'told() { print -r -- "<<$BUFFER>>"; BUFFER=; zle .accept-line }; zle -N told'
    zpty -w it 'bindkey "^X^X" told; print rea""dy'
    zpty -r -m it found '*ready*'
    for line in "$@"; do
        zpty -w -n it "$line"$'\t\x18\x18'
        zpty -r -m it found '*<<*>>*'
        print -r -- "${${found##*<<}%%>>*}"
    done
    zpty -d it
}
typed 'dragoman ag' 'dragoman agents do' 'dragoman -a my' 'dragoman --session fi' \
    'dragoman watch fi' 'dragoman sessions show fi' 'dragoman chat --yo' \
    'dragoman policy explain --operation w' 'dragoman policy revoke aa' \
    'dragoman --output eve' 'dragoman completion f' 'dragoman --cwd fo'
"""


@pytest.mark.parametrize("way", ["in fpath", "sourced"])
def test_zsh_completes_commands_options_values_and_names(dragoman: Dragoman, way: str) -> None:
    dragoman.write_settings({"agent_servers": {"my-own": {"command": "x"}}})
    (dragoman.workspace / "folder").mkdir()
    assert dragoman("--session", "fix-it", "x", agent="quiet").code == 0
    keep_rules(dragoman, "aa11", "bb22")
    functions = dragoman.home / "functions"
    functions.mkdir()
    if way == "in fpath":
        (functions / "_dragoman").write_text(dragoman("completion", "zsh").out)
    else:
        dragoman.env["SOURCED"] = "yes"
    dragoman.env["FPATH_FIRST"] = str(functions)
    assert shell(dragoman, "zsh", ZSH).splitlines() == [
        "dragoman agents ",
        "dragoman agents doctor ",
        "dragoman -a my-own ",
        "dragoman --session fix-it ",
        "dragoman watch fix-it ",
        "dragoman sessions show fix-it ",
        "dragoman chat --yolo ",
        "dragoman policy explain --operation write ",
        "dragoman policy revoke aa11 ",
        "dragoman --output events ",
        "dragoman completion fish ",
        "dragoman --cwd folder/",
    ]


def test_every_option_is_in_every_script(dragoman: Dragoman) -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
    flags = {word.strip("`") for word in reference.split() if word.startswith("`--")}
    flags = {flag.rstrip("`,").partition("[")[0] for flag in flags}
    for name in ("bash", "zsh", "fish"):
        script = dragoman("completion", name).out
        for flag in flags:
            assert (f"-l {flag[2:]}" if name == "fish" else flag) in script, (name, flag)
