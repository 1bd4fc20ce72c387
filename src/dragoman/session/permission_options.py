"""The answers to a permission request as shown to people: in one order, in our words. Pure.

The kind of an answer decides what it does, so the kind is what a person reads, in our own words.
The agent's label follows as a remark, and where it says something else than the kind, the remark
says so. What is sent back to the agent, and what is recorded, stays as it came.

`web/src/core/permissions/permission_options.ts` does the same for the page; a test holds the two
together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from dragoman.lazy_pattern import lazy_pattern
from dragoman.safe_text import decomposed, reveal
from dragoman.session.facts import PermissionOption

WORDS = {
    "allow_once": "Allow once",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}
_ORDER = list(WORDS)
FOR_THE_SESSION = "Allow for this session"
UNKNOWN, UNCLEAR = "Unknown answer", "Unclear answer"
# Labels that say no more than our words do.
SAME = {
    "allow_once": ("allow once", "allow"),
    "allow_always": ("always allow", "allow always"),
    "reject_once": ("reject", "reject once"),
    "reject_always": ("always reject", "reject always"),
}


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """One answer for a person: `words` are ours, and `remark` tells what the agent calls it.

    With `warns` the remark must be read: the label says something else than the answer does.
    """

    id: str
    kind: str
    words: str
    remark: str = ""
    warns: bool = False
    consequence: str | None = None
    counts_once: bool = False

    @property
    def line(self) -> str:
        """All of it in one line."""
        return f"{self.words} ({self.remark})" if self.remark else self.words


def in_order(options: Iterable[PermissionOption]) -> list[PermissionOption]:
    """By kind, so that the first is never one for always where there is one for once; those of
    one kind, and of kinds nobody knows at the end, as the agent has them."""
    return sorted(options, key=_place)


def as_shown(options: Iterable[PermissionOption]) -> list[Shown]:
    """The answers in their order, no two of which read the same."""
    return in_words(in_order(options))


def in_words(options: Sequence[PermissionOption]) -> list[Shown]:
    """The answers as they came, no two of which read the same."""
    kinds = Counter(option.kind for option in options)
    names = Counter((option.kind, _label(option.name)) for option in options)
    ids = Counter(option_id for option_id, _ in {(option.id, option.kind) for option in options})

    def shown(option: PermissionOption) -> Shown:
        clear = ids[option.id] == 1
        return _shown(
            option,
            alone=kinds[option.kind] == 1 and option.kind in WORDS and clear,
            known_by_name=names[option.kind, _label(option.name)] == 1,
            clear=clear,
        )

    return [shown(option) for option in options]


def _shown(option: PermissionOption, *, alone: bool, known_by_name: bool, clear: bool) -> Shown:
    words = _in_our_words(option) if clear else UNCLEAR
    called = _called(option, alone=alone, known_by_name=known_by_name)
    warning = _warning(option, clear=clear)
    parts = [part for part in (called, warning) if part]
    return Shown(
        option.id,
        option.kind,
        words,
        ", ".join(parts),
        bool(warning),
        option.consequence,
        option.counts_once,
    )


def is_for_session(option: PermissionOption) -> bool:
    """Whether a yes for always speaks of this session, in whatever words. The label is believed,
    since it makes the answer narrower; a no is as lasting as its kind."""
    if option.kind != "allow_always":
        return False
    return any(THE_SESSION.search(" ".join(words)) for words in _readings(option.name))


_YES = ("yes", "ok", "okay", "allow", "accept", "approve", "authorize", "confirm", "proceed", "run")
_PLAIN = frozenset((*_YES, "continue", "once", "just", "this", "it", "action", "command", "edit"))


def is_plain_yes(label: str) -> bool:
    """Whether a yes says nothing but yes to the one action."""
    return any(_PLAIN.issuperset(words) for words in _readings(label))


def announces_more(label: str) -> bool:
    """Whether a yes says that it does more than allow the one action: that it lasts, or changes a
    mode. A label that repeats a command may only seem to."""
    return any(
        WIDER.search(" ".join(words)) or _senses(words) & {"always", "session", "while"}
        for words in _readings(label)
    )


def _in_our_words(option: PermissionOption) -> str:
    return FOR_THE_SESSION if is_for_session(option) else WORDS.get(option.kind, UNKNOWN)


def _called(option: PermissionOption, *, alone: bool, known_by_name: bool) -> str:
    """What the agent calls it, where that says more; two of a kind differ in nothing else."""
    label = _label(option.name)
    if alone and (_says_the_same(option.name, option.kind) or label == _in_our_words(option)):
        return ""
    name = f"the agent calls this “{label}”" if label else "the agent gives it no name"
    return name if known_by_name else f"{name}, with the id “{_label(option.id)}”"


def _warning(option: PermissionOption, *, clear: bool) -> str:
    if not clear:
        return "but uses its id for another answer too: what it does is up to the agent"
    if option.kind not in WORDS:
        kind = _label(option.kind)
        return f"its kind “{kind}” is unknown: what it does is up to the agent"
    meaning = contradiction(option.name, option.kind)
    return "" if meaning is None else f"but {meaning}"


LONGEST, LABEL_START, LABEL_END = 240, 160, 60
MOST_READ = 2_000
BLANKS = " \t\r\n"


def _label(text: str) -> str:
    """The agent's wording on one line, nothing hidden, and of a long one both ends."""
    text = text.strip(BLANKS)
    if len(text) > LONGEST:
        between = len(text) - LABEL_START - LABEL_END
        text = f"{text[:LABEL_START]} … {between} characters … {text[-LABEL_END:]}"
    return reveal(text).replace("“", "'").replace("”", "'")


def _says_the_same(name: str, kind: str) -> bool:
    name = name.strip(BLANKS)
    if not name:
        return True
    is_plain = len(name) <= LONGEST and re.fullmatch(r"[A-Za-z_ -]+", name) is not None
    return is_plain and (
        name == kind or any(" ".join(words) in SAME.get(kind, ()) for words in _readings(name))
    )


# ── what a label says ─────────────────────────────────────────────────────────────────────────


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


YES = _words_of(
    "accept accepted agree allow allowed approve approved authorise authorised authorize "
    "authorized confirm enable grant ok okay permit sure trust y yeah yep yes"
)
MAYBE_YES = _words_of("apply continue execute go proceed run")
NO = _words_of(
    "abort block cancel decline declined denied deny disallow disapprove dismiss forbid n "
    "nevermind no none nope nothing prevent refuse refused reject rejected skip"
)
NOT = _words_of("cannot cant dont never not stop wont")
ASKING = _words_of(
    "approval ask asked asking confirmation prompt prompting prompts questions remind"
)
ONCE = lazy_pattern(r"\b(?:once|one time|this time|just this|only this|just now)\b")
LASTING = lazy_pattern(
    r"\b(?:always|forever|permanent|permanently|every time|from now on|all future|remember|never)\b"
)
_this = r"\b(?:this|the|current|whole|entire|per|for) (?:[a-z]+ )?"
# "sessions" as in "all future sessions" is for always; "this session's" is read as one word too.
THE_SESSION = lazy_pattern(
    r"\bsession\b|\b(?:this|current|the) sessions\b"
    rf"|{_this}(?:conversation|chat)\b|\b(?:in|during|within|of) (?:conversation|chat)\b"
    r"|\b(?:until|till|before) (?:[a-z]+ ){0,3}(?:exit|quit|restart|close|shutdown)"
    r"(?:s|d|ed)?\b"
)
FOR_A_WHILE = lazy_pattern(rf"{_this}turn\b|\b(?:today|temporary|temporarily)\b")
WIDER = lazy_pattern(
    r"\b(?:auto[a-z]*|all|any|every|everything|anything|future|mode|switch|risks?|risky|rest"
    r"|without|bypass|yolo)\b"
)
_LENGTHS = (
    ("once", ONCE),
    ("while", FOR_A_WHILE),
    ("session", THE_SESSION),
    ("always", LASTING),
)
# Letters of other scripts that look like these.
LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u0578\u03b9\u03bf\u03b1\u03bd"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0391\u0392\u0395\u0399\u039a\u039d\u039f\u03a4",
    "aeopcyxijsdnioavABEKMHOPCTXABEIKNOT",
)
_spelt_out = lazy_pattern(r"\b([a-zA-Z]) (?=[a-zA-Z]\b)", re.ASCII)
_humps = lazy_pattern(r"(?<=[a-z])(?=[A-Z])")
SEPARATORS = lazy_pattern(
    "[\\x00-\\x20!-&(-/:-@\\[-`{-~\u00b7\u2010-\u2015\u2022\u2026\u2028\u2029]+"
)


def contradiction(label: str, kind: str) -> str | None:
    """What an answer of this kind does, if its label says something else; None if it does not.

    Knows English words alone, in many spellings: a help for the eye, never what decides.
    """
    if kind not in WORDS:
        return None
    senses = frozenset[str]().union(*map(_senses, _readings(label)))
    allows = kind.startswith("allow")
    if ("no" if allows else "yes") in senses:
        return "it allows" if allows else "it rejects"
    if kind.endswith("_always"):
        believed = allows and "session" in senses
        limited = "while" in senses or ("once" in senses and "always" not in senses)
        if limited or ("session" in senses and not believed):
            return f"it applies {'to the session' if believed else 'always'}"
        return None
    lasting = senses & {"session", "while", "always"} and "once" not in senses
    return "it applies once" if lasting else None


def _readings(label: str) -> tuple[Sequence[str], ...]:
    """The label as words: as it is written, and with `allowOnce` taken for two."""
    return _read(label[:MOST_READ])


@lru_cache(maxsize=64)
def _read(label: str) -> tuple[Sequence[str], ...]:
    text = decomposed(label).translate(LOOKALIKES)
    spelt_out = _spelt_out.sub(r"\1", SEPARATORS.sub(" ", text))
    return _words(spelt_out), _words(_humps.sub(" ", text))


def _words(text: str) -> Sequence[str]:
    # What is left apart from letters is a mark on one, or nothing that can be seen.
    return re.sub("[^a-z ]", "", SEPARATORS.sub(" ", text.lower())).split()


def _senses(words: Sequence[str]) -> frozenset[str]:
    """yes, no, once, while, session, always: whatever of these the words say."""
    text = " ".join(words)
    found = {sense for sense, pattern in _LENGTHS if pattern.search(text)}
    denied = ""
    for word in words:
        if word in ASKING and denied:
            found.add("always")  # "and don't ask again"
            denied = ""
        elif word in NOT or word == "without":
            denied = word
        elif word in YES or word in NO:
            found.add("no" if (word in NO) != (denied in NOT) else "yes")
            denied = ""
        elif word in MAYBE_YES and denied in NOT:
            found.add("no")
            denied = ""
    if denied in NOT:
        found.add("no")
    if not found & {"yes", "no"} and not MAYBE_YES.isdisjoint(words):
        found.add("yes")
    return frozenset(found)


def _place(option: PermissionOption) -> int:
    return _ORDER.index(option.kind) if option.kind in WORDS else len(_ORDER)


# ── which of them is chosen ───────────────────────────────────────────────────────────────────

_ALLOWING = ("allow_once", "allow_always")
_REFUSING = ("reject_once", "reject_always")


def is_question(options: Sequence[PermissionOption], *, names_action: bool) -> bool:
    """Whether the options differ in more than yes and no, so that only a person can choose.

    Several ways to say yes once are one yes where the request names an action: one is the plain
    one, the others change a mode as well. An unknown kind and an id used twice leave open
    what would be chosen.
    """
    kinds = Counter(option.kind for option in options)
    ids = Counter(option.id for option in options)
    unclear = any(kind not in _ALLOWING + _REFUSING for kind in kinds) or len(ids) < len(options)
    return unclear or (kinds["allow_once"] > 1 and not names_action)


def choose_option(
    options: Sequence[PermissionOption],
    effect: Literal["allow", "ask", "deny"],
    *,
    always: bool = False,
    names_action: bool = False,
) -> str | None:
    """The id of the narrowest option that says this, None where no option does.

    To allow, None means that a person has to choose; to refuse, that only `cancelled` is left.
    An allow is for once, unless the person said always.
    """
    if effect == "deny":
        return _first(options, _REFUSING[::-1] if always else _REFUSING)
    if effect == "ask" or is_question(options, names_action=names_action):
        return None
    once = [option for option in options if option.kind == "allow_once"]
    if always or len(once) < 2:
        return _first(options, _ALLOWING[::-1] if always else _ALLOWING[:1])
    # A label may repeat the command, so what it does not say proves nothing: only a plain yes does.
    if plain := next((option for option in once if is_plain_yes(option.name)), None):
        return plain.id
    return None if announces_more(once[0].name) else once[0].id


def _first(options: Sequence[PermissionOption], kinds: Sequence[str]) -> str | None:
    found = (option.id for kind in kinds for option in options if option.kind == kind)
    return next(found, None)
