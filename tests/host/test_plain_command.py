from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from dragoman.host.commands.plain_command import hands_a_line_to_a_shell, is_harmless, plain_words

SEED = 4_711


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls", ("ls",)),
        ("npm test", ("npm", "test")),
        ("  npm \t test  ", ("npm", "test")),
        ("git commit -m 'two words'", ("git", "commit", "-m", "two words")),
        ('git commit -m "it\'s"', ("git", "commit", "-m", "it's")),
        ("g'i't s\"tat\"us", ("git", "status")),
        ("echo ''", ("echo", "")),
        ("a '[x]' \"{y}\" '~' '#' '!'", ("a", "[x]", "{y}", "~", "#", "!")),
        ("make -j4 CC=gcc", ("make", "-j4", "CC=gcc")),
        ("./run a/b.c:1,2+3@4%5", ("./run", "a/b.c:1,2+3@4%5")),
    ],
)
def test_a_plain_line_is_its_words(line: str, words: tuple[str, ...]) -> None:
    assert plain_words(line) == words


@pytest.mark.parametrize("char", [*"|&;()<>$`\\\n\r\0\x1b\x7f", "é", "\u00a0", "\ud800"])
@pytest.mark.parametrize("line", ["a{}b", "a 'x{}y'", 'a "x{}y"', "{}a", "a{}"])
def test_no_metacharacter_is_plain_even_in_quotes(line: str, char: str) -> None:
    assert plain_words(line.replace("{}", char)) is None


@pytest.mark.parametrize("char", [*"*?[]{}~#!^"])
def test_what_a_shell_expands_is_plain_only_in_quotes(char: str) -> None:
    assert plain_words(f"a x{char}") is None
    assert plain_words(f"a 'x{char}'") == ("a", f"x{char}")


@pytest.mark.parametrize(
    "line", ["", " ", "A=1", "A=1 ls", "_a+=1 ls", "'A'=1 ls", 'a "', "a '", 'a "!"']
)
def test_an_odd_line_is_not_plain(line: str) -> None:
    assert plain_words(line) is None


ALPHABET = (*"abA=_-./:,+@% \t'\"", *"*?[]{}~#!^$`\\;&|<>()\n", "a", "b ", "'x y'", '"x y"')


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_real_shell_reads_the_same_words(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    rng = random.Random(SEED)
    plain: dict[str, tuple[str, ...]] = {}
    while len(plain) < 2_000:
        line = "".join(
            rng.choice(ALPHABET[: rng.choice((19, 19, 45))]) for _ in range(rng.randrange(1, 14))
        )
        if (words := plain_words(line)) is not None:
            plain[line] = words
    script = "f() { for w; do printf '%s\\0' \"$w\"; done; printf '\\n'; }\n"
    script += "".join(f"f {line}\n" for line in plain)
    ran = subprocess.run(
        [shell, "-c", script], capture_output=True, timeout=30, check=True, cwd="/"
    )
    heard = [tuple(said.split("\0")[:-1]) for said in ran.stdout.decode().split("\n")[:-1]]
    wrong = [
        (line, read)
        for (line, words), read in zip(plain.items(), heard, strict=True)
        if read != words
    ]
    assert wrong == [], f"seed {SEED}"


@pytest.mark.parametrize("word", ["", "status", "two words", "a/b.c", "--x=1,2"])
def test_a_harmless_word(word: str) -> None:
    assert is_harmless(word)


@pytest.mark.parametrize("word", ["a;b", "$x", "`x`", "a\nb", "*", "~", "#", "'", "é", "a\n"])
def test_a_word_with_a_meaning_to_shells(word: str) -> None:
    assert not is_harmless(word)


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "a; b"),
        ("/bin/bash", "-lc", "a | b"),
        ("bash", "--norc", "-c", "a && b"),
        ("sudo", "-u", "x", "dash", "-ec", "a > b"),
        ("env", "A=1", "zsh", "-c", "$x"),
        ("fish", "--command=a; b"),
        ("bash", "-c", "a", "-c", "b;c"),
        ("bash", "bash", "-c", "a;b"),
    ],
)
def test_a_shell_with_a_line_is_seen(argv: tuple[str, ...]) -> None:
    assert hands_a_line_to_a_shell(argv)


@pytest.mark.parametrize(
    "argv",
    [
        ("git", "commit", "-c", "a; b"),
        ("bash", "-c", "npm test"),
        ("bash", "script.sh", "a;b"),
        ("sh",),
        ("bash", "-x", "a;b"),
    ],
)
def test_no_line_no_alarm(argv: tuple[str, ...]) -> None:
    assert not hands_a_line_to_a_shell(argv)
