"""What a raw input says of which it is not known what it is for: no rule may allow it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dragoman.host.claims.idle_fields import (
    may_be_a_program,
    may_be_done,
    may_be_run,
    may_change,
    may_do_more,
    may_name_a_file,
    may_switch,
)
from dragoman.host.claims.input_keys import (
    ADDRESS_ENDINGS,
    CHANGING_KEYS,
    CHANGING_VERBS,
    CWD_KEYS,
    DOCUMENT_KEYS,
    END_KEYS,
    ENV_KEYS,
    FOLDER_KEYS,
    NEW_TEXT_KEYS,
    OUTPUT_KEYS,
    PATH_ENDINGS,
    PATTERNS,
    PLAIN_PATH_KEYS,
    READ_WITH_COMMANDS,
    READ_WITH_FILES,
    REPLACING_KEYS,
    ROOT_KEYS,
    SELECTING,
    USER_KEYS,
    VALUE_KEYS,
    VERB_KEYS,
)
from dragoman.host.rules.globs import LONGEST_PATH


class Doubts:
    """Of one input. What leaves doubt depends on what is next to it: a command, or a file that
    is changed, or one that is read, or an address."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """What could be names of files, of which nobody knows that."""
        self._of_commands = self._of_changes = self._of_reads = self._of_fetches = False
        self._of_selections = self._of_values = False

    def remain(
        self,
        *,
        runs: bool,
        changes: bool,
        whole_files: bool,
        reads: bool,
        searches: bool,
        fetches: bool,
    ) -> bool:
        """About what a claim says to do; with `whole_files` they are deleted or moved, so that
        nothing is a text to look for in them; with `searches` it reads, and there is such a text.
        """
        of_names = bool(self.names) and (changes or reads or fetches)
        return (
            of_names
            or (runs and self._of_commands)
            or (changes and self._of_changes)
            or (whole_files and self._of_selections)
            or (reads and self._of_reads)
            or (reads and not searches and self._of_values)
            or (fetches and self._of_fetches)
        )

    def note_key(self, key: str, name: str, value: Any) -> None:
        """Any field, whatever its value."""
        # An empty text is one that is written too.
        brings = key in NEW_TEXT_KEYS or key in REPLACING_KEYS
        self._of_reads |= brings and isinstance(value, str | list | tuple | dict)
        self._of_reads |= key in VALUE_KEYS and value is not None
        self._of_values |= key == "text" or (key == "lines" and _is_texts(value))
        if key == "truncate":
            self._of_reads |= value is not None and value is not False
        if not value:
            return
        self._note_switch(key, name, value)
        if " " in name.strip():
            self._of_commands = True
        if value is True and not key.endswith(PATH_ENDINGS):
            self._of_commands |= may_switch(key)
        # Code next to a command runs too, and no rule can say what it does.
        is_code = key == "code"
        self._of_commands |= is_code
        verb = value.strip().casefold() if isinstance(value, str) else ""
        changes = key in VERB_KEYS and verb in CHANGING_VERBS
        self._of_reads |= is_code or changes or key in CHANGING_KEYS

    def _note_switch(self, key: str, name: str, value: Any) -> None:
        """What is set, without a text that says to what."""
        by_a_word = isinstance(value, str) and value.strip().casefold() in ("true", "yes", "on")
        if key in ROOT_KEYS | USER_KEYS:
            self._of_changes = self._of_reads = self._of_fetches = True
        elif by_a_word or not isinstance(value, str | list | tuple | dict):
            self._of_changes |= may_do_more(name, written=True)
            told = may_do_more(name, written=False)
            self._of_reads |= told
            self._of_fetches |= told

    def note_what_follows(self) -> None:
        """Something that is done next, in a form that is not read."""
        self._of_changes = self._of_reads = self._of_fetches = True

    def note_text(self, key: str, name: str, text: str, *, is_address: bool) -> None:
        """A text that stands somewhere else than in an environment."""
        if key.endswith(PATH_ENDINGS):
            self._of_commands |= key not in PLAIN_PATH_KEYS
            return
        if (is_address or key.endswith(ADDRESS_ENDINGS)) and " " not in text:
            # Without its scheme, it is not known whether it is one.
            self._of_commands |= not is_address
            self._of_changes |= not is_address
            if text.startswith(("/", ".", "~")):
                self._note_name(key, text, is_address=False)  # of a link, for example
            return
        if not any(key in each for each in READ_WITH_COMMANDS):
            self._of_commands |= may_be_run(key, text)
        self._of_selections |= key in SELECTING or key in PATTERNS
        self._of_changes |= key in SELECTING
        self._note_more(key, name, text, is_address=is_address)
        self._note_name(key, text, is_address=is_address)

    def _note_more(self, key: str, name: str, text: str, *, is_address: bool) -> None:
        changes = may_change(key, text)
        self._of_reads |= changes
        self._of_fetches |= changes
        if not is_address:
            self._of_changes |= may_be_a_program(key, name, text, written=True)
            word = may_be_a_program(key, name, text, written=False)
            self._of_reads |= word
            self._of_fetches |= word
        is_known = key in READ_WITH_FILES or key in ENV_KEYS or key in CWD_KEYS | FOLDER_KEYS
        if is_known:
            return
        self._of_changes |= key not in DOCUMENT_KEYS and may_be_done(key, text, written=True)
        told = may_be_done(key, text, written=False)
        self._of_reads |= told
        self._of_fetches |= told

    def _note_name(self, key: str, text: str, *, is_address: bool) -> None:
        if is_address or not 0 < len(text) <= LONGEST_PATH or "\n" in text:
            return
        is_name = may_name_a_file(key, text)
        if key not in READ_WITH_FILES:
            self.names += [text] if is_name else []
        self._of_fetches |= is_name and key in END_KEYS - OUTPUT_KEYS


def _is_texts(value: Any) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return any(isinstance(each, str) for each in cast("Sequence[Any]", value))
