from __future__ import annotations

import random
import time
import tracemalloc
import unicodedata
from itertools import pairwise

import pytest

from dragoman.safe_text import Sanitiser, reveal, sanitise, single_line

SEED = 20_240

ESC = "\x1b"
ST = "\x1b\\"

# What a person reads, for what was printed. Sequences vanish; whatever else acts or hides is shown.
NAMED: dict[str, tuple[str, str]] = {
    # ordinary text
    "empty": ("", ""),
    "plain": ("hello", "hello"),
    "newline and tab": ("a\tb\nc", "a\tb\nc"),
    "accents": ("naïve café", "naïve café"),
    "combining accent": ("e\u0301", "e\u0301"),
    "cjk": ("漢字かな", "漢字かな"),
    "arabic": ("مرحبا", "مرحبا"),
    "hebrew": ("שלום", "שלום"),
    "no-break space": ("a\u00a0b", "a\u00a0b"),
    "emoji": ("🎉 done", "🎉 done"),
    "skin tone": ("👍🏽", "👍🏽"),
    "family": ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
    "red heart": ("❤\ufe0f", "❤\ufe0f"),
    "couple with heart": ("👩\u200d❤\ufe0f\u200d👨", "👩\u200d❤\ufe0f\u200d👨"),
    "keycap": ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
    "rainbow flag": ("🏳\ufe0f\u200d🌈", "🏳\ufe0f\u200d🌈"),
    "flag": ("🇫🇷", "🇫🇷"),
    "persian with non-joiner": ("می\u200cخواهم", "می\u200cخواهم"),
    "hindi with joiner": ("क\u094d\u200dष", "क\u094d\u200dष"),
    "ideographic variant": ("葛\U000e0100", "葛\U000e0100"),
    "arabic number sign": ("\u0600١", "\u0600١"),
    "box drawing": ("┌─┐", "┌─┐"),
    "braille spinner": ("⠋", "⠋"),
    "a mark typed by hand": ("⟨U+202E⟩", "⟨U+202E⟩"),
    # CSI
    "colour": (f"{ESC}[31mred{ESC}[0m", "red"),
    "256 colours": (f"{ESC}[38;5;196mx", "x"),
    "true colour with colons": (f"{ESC}[38:2::1:2:3mx", "x"),
    "bare reset": (f"{ESC}[mx", "x"),
    "clear screen": (f"{ESC}[2J{ESC}[Hx", "x"),
    "cursor up and erase": (f"safe{ESC}[1A{ESC}[2Kevil", "safeevil"),
    "private mode": (f"{ESC}[?1049hx{ESC}[?25l", "x"),
    "bracketed paste": (f"{ESC}[200~rm -rf{ESC}[201~", "rm -rf"),
    "mouse reporting": (f"{ESC}[?1003;1006hx", "x"),
    "cursor style, with a space": (f"{ESC}[2 qx", "x"),
    "device attributes": (f"{ESC}[>0cx", "x"),
    "window report of the title": (f"{ESC}[21tx", "x"),
    "conceal": (f"{ESC}[8mhidden{ESC}[28m", "hidden"),
    "c1 csi": ("\x9b31mred", "red"),
    "csi cut off by the end": (f"x{ESC}[31", "x"),
    "csi broken off by a newline": (f"{ESC}[3\n1m", "\n1m"),
    "csi broken off by an escape": (f"{ESC}[3{ESC}[1mx", "x"),
    "csi broken off by a letter beyond ascii": (f"{ESC}[3é", "é"),
    "csi broken off by cancel": (f"{ESC}[3\x18x", "␘x"),
    "csi broken off by delete": (f"{ESC}[3\x7fx", "␡x"),
    "csi within csi by c1": (f"{ESC}[3\x9b1mx", "x"),
    "csi of a thousand parameters": (f"{ESC}[{'1;' * 1000}mx", "x"),
    "parameters after intermediates": (f"{ESC}[ 1qx", "x"),
    # OSC and the other strings
    "title by bel": (f"{ESC}]0;evil\x07x", "x"),
    "title by st": (f"{ESC}]0;evil{ST}x", "x"),
    "title by c1 st": (f"{ESC}]0;evil\x9cx", "x"),
    "c1 osc": ("\x9d0;evil\x9cx", "x"),
    "link": (f"{ESC}]8;;https://evil.example{ST}text{ESC}]8;;{ST}", "text"),
    "link with id, by bel": (f"{ESC}]8;id=1;http://e\x07t{ESC}]8;;\x07", "t"),
    "clipboard": (f"{ESC}]52;c;cm0gLXJm\x07x", "x"),
    "clipboard query": (f"{ESC}]52;c;?{ST}x", "x"),
    "palette": (f"{ESC}]4;1;rgb:ff/00/00{ST}x", "x"),
    "notification": (f"{ESC}]9;boo\x07{ESC}]777;notify;a;b\x07x", "x"),
    "shell integration": (f"{ESC}]133;A\x07$ {ESC}]133;B\x07ls", "$ ls"),
    "inline image": (f"{ESC}]1337;File=inline=1:AAAA\x07x", "x"),
    "osc hides no later line": (f"{ESC}]0;evil\nnext", "\nnext"),
    "osc ended by a carriage return": (f"{ESC}]0;evil\rnext", "\nnext"),
    "osc ended by another sequence": (f"{ESC}]0;evil{ESC}[31mx", "x"),
    "osc ended by cancel": (f"{ESC}]0;evil\x18x", "x"),
    "osc ended by substitute": (f"{ESC}]0;evil\x1ax", "x"),
    "osc ended by a backspace": (f"{ESC}]0;evil\bx", "␈x"),
    "osc ended by next line": (f"{ESC}]0;evil\x85x", "⟨U+0085⟩x"),
    "osc with text beyond ascii": (f"{ESC}]0;évil 🎉\x07x", "x"),
    "osc with a bidi override inside": (f"{ESC}]0;\u202e\x07x", "x"),
    "osc with delete inside": (f"{ESC}]0;a\x7fb\x07x", "x"),
    "osc in osc": (f"{ESC}]0;a{ESC}]0;b\x07x", "x"),
    "osc cut off by the end": (f"x{ESC}]0;evil", "x"),
    "empty osc": (f"{ESC}]\x07x", "x"),
    "sixel": (f"{ESC}Pq#0;2;0;0;0~~{ST}x", "x"),
    "c1 dcs": ("\x90q~~\x9cx", "x"),
    "termcap query": (f"{ESC}P+q544e{ST}x", "x"),
    "tmux passthrough": (f"{ESC}Ptmux;{ESC}{ESC}]52;c;eA==\x07{ST}x", "␛x"),
    "kitty graphics": (f"{ESC}_Gf=24;AAAA{ST}x", "x"),
    "c1 apc": ("\x9fGf\x9cx", "x"),
    "privacy message": (f"{ESC}^secret{ST}x", "x"),
    "c1 privacy message": ("\x9esecret\x9cx", "x"),
    "start of string": (f"{ESC}Xsecret{ST}x", "x"),
    "c1 start of string": ("\x98secret\x9cx", "x"),
    "stray string terminator": (f"{ST}x", "x"),
    "stray c1 string terminator": ("\x9cx", "⟨U+009C⟩x"),
    # other escapes
    "charset": (f"{ESC}(0lqk{ESC}(B", "lqk"),
    "charset with two intermediates": (f"{ESC}$(Cx", "x"),
    "utf-8 off": (f"{ESC}%@x", "x"),
    "double height": (f"{ESC}#3x", "x"),
    "full reset": (f"{ESC}cx", "x"),
    "save and restore": (f"{ESC}7x{ESC}8", "x"),
    "keypad": (f"{ESC}=x{ESC}>", "x"),
    "reverse index": (f"{ESC}Mx", "x"),
    "escape at the end": (f"x{ESC}", "x␛"),
    "escape before a newline": (f"{ESC}\nx", "␛\nx"),
    "escape before a letter beyond ascii": (f"{ESC}é", "␛é"),
    "escape before delete": (f"{ESC}\x7f", "␛␡"),
    "two escapes": (f"{ESC}{ESC}[31mx", "␛x"),
    "charset broken off": (f"{ESC}(\nx", "\nx"),
    "charset cut off by the end": (f"x{ESC}(", "x"),
    # control characters
    "nul": ("a\0b", "a␀b"),
    "bell": ("a\x07", "a␇"),
    "backspaces": ("abc\b\b\bxyz", "abc␈␈␈xyz"),
    "vertical tab and form feed": ("a\vb\fc", "a␋b␌c"),
    "shift out": ("\x0e", "␎"),
    "separators": ("\x1c\x1d\x1e\x1f", "␜␝␞␟"),
    "delete": ("\x7f", "␡"),
    "next line": ("a\x85b", "a⟨U+0085⟩b"),
    "index": ("a\x84b", "a⟨U+0084⟩b"),
    "c1 read as latin-1": ("Â\x9b31mx", "Âx"),
    "crlf": ("a\r\nb", "a\nb"),
    "carriage return": ("10%\r20%", "10%\n20%"),
    "cr cr lf": ("a\r\r\nb", "a\nb"),
    "crlf twice": ("a\r\n\r\nb", "a\n\nb"),
    "carriage return before a sequence": (f"a\r{ESC}[Kb", "a\nb"),
    "carriage return at the end": ("a\r", "a\n"),
    # characters that hide or reorder
    "right-to-left override": ("a\u202eexe.txt", "a⟨U+202E⟩exe.txt"),
    "embeddings": ("\u202a\u202b\u202c\u202d", "⟨U+202A⟩⟨U+202B⟩⟨U+202C⟩⟨U+202D⟩"),
    "isolates": ("\u2066\u2067\u2068\u2069", "⟨U+2066⟩⟨U+2067⟩⟨U+2068⟩⟨U+2069⟩"),
    "direction marks": ("\u200e\u200f\u061c", "⟨U+200E⟩⟨U+200F⟩⟨U+061C⟩"),
    "zero width space": ("rm\u200b", "rm⟨U+200B⟩"),
    "joiner between latin letters": ("a\u200db\u200cc", "a⟨U+200D⟩b⟨U+200C⟩c"),
    "joiner at the start": ("\u200dx", "⟨U+200D⟩x"),
    "two joiners": ("👨\u200d\u200d👩", "👨\u200d⟨U+200D⟩👩"),
    "joiner after a mark": ("\u202e\u200d", "⟨U+202E⟩⟨U+200D⟩"),
    "joiner after a bell": ("\x07\u200d", "␇⟨U+200D⟩"),
    "joiner after an escape symbol": (f"{ESC}\u200d", "␛⟨U+200D⟩"),
    "word joiner": ("a\u2060b", "a⟨U+2060⟩b"),
    "invisible times": ("a\u2062b", "a⟨U+2062⟩b"),
    "deprecated swap": ("\u206a", "⟨U+206A⟩"),
    "byte order mark": ("\ufeffa", "⟨U+FEFF⟩a"),
    "soft hyphen": ("pass\u00adword", "pass⟨U+00AD⟩word"),
    "grapheme joiner": ("a\u034fb", "a⟨U+034F⟩b"),
    "mongolian separator": ("\u180e", "⟨U+180E⟩"),
    "hangul fillers": ("\u115f\u3164\uffa0", "⟨U+115F⟩⟨U+3164⟩⟨U+FFA0⟩"),
    "tags": ("hi\U000e0041\U000e007f", "hi⟨U+E0041⟩⟨U+E007F⟩"),
    "line separator": ("a\u2028b\u2029c", "a⟨U+2028⟩b⟨U+2029⟩c"),
    "annotation": ("\ufff9a\ufffab\ufffb", "⟨U+FFF9⟩a⟨U+FFFA⟩b⟨U+FFFB⟩"),
    "variation selector after a letter": ("a\ufe0f", "a⟨U+FE0F⟩"),
    "variation selector after an accented letter": ("é\ufe01", "é⟨U+FE01⟩"),
    "run of variation selectors": ("❤\ufe0f\ufe0f", "❤\ufe0f⟨U+FE0F⟩"),
    "variant of a latin letter": ("a\U000e0101", "a⟨U+E0101⟩"),
    "noncharacter": ("\uffff\ufdd0\U0001ffff", "⟨U+FFFF⟩⟨U+FDD0⟩⟨U+1FFFF⟩"),
    "musical control": ("\U0001d173", "⟨U+1D173⟩"),
    "shorthand control": ("\U0001bca0", "⟨U+1BCA0⟩"),
    "lone surrogates": ("a\ud800b\udfff", "a\ufffdb\ufffd"),
    "emoji over a removed sequence": (f"👨{ESC}[0m\u200d👩", "👨\u200d👩"),
}

# Format characters that draw something: signs that enclose digits, and hieroglyph layout.
DRAWN = {
    *range(0x600, 0x606),
    *(0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD),
    *range(0x13430, 0x13460),
}
# Invisible without being format characters.
BLANKS = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0}
JOINERS = "\u200c\u200d"


def is_forbidden(char: str) -> bool:
    category = unicodedata.category(char)
    if category == "Cf":
        return ord(char) not in DRAWN and char not in JOINERS
    if category == "Cc":
        return char not in "\n\t"
    return category in ("Cs", "Zl", "Zp") or ord(char) in BLANKS


def forbidden_in(text: str) -> list[str]:
    return [f"U+{ord(char):04X}" for char in text if is_forbidden(char)]


def in_pieces(text: str, *cuts: int) -> str:
    sanitiser = Sanitiser()
    edges = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    return "".join(map(sanitiser.feed, pieces)) + sanitiser.flush()


def test_there_are_enough_named_cases() -> None:
    assert len(NAMED) >= 120


@pytest.mark.parametrize("name", NAMED)
def test_named_case_reads_as_it_should(name: str) -> None:
    printed, shown = NAMED[name]
    assert sanitise(printed) == shown
    assert not forbidden_in(shown)


@pytest.mark.parametrize("name", NAMED)
def test_named_case_is_the_same_cut_anywhere(name: str) -> None:
    printed, shown = NAMED[name]
    for cut in range(len(printed) + 1):
        assert in_pieces(printed, cut) == shown, f"cut at {cut}"
    assert in_pieces(printed, *range(len(printed))) == shown


@pytest.mark.parametrize("name", NAMED)
def test_named_case_is_safe_when_revealed(name: str) -> None:
    printed, _ = NAMED[name]
    for newlines in (True, False):
        assert not forbidden_in(reveal(printed, newlines=newlines))


PIECES = (
    *(printed for printed, _ in NAMED.values()),
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"[]P^_X\\;:?0123456789mHJKhl ()#%c~@",
    *"\u200c\u200d\ufe0f\u202e\u2066\u200b\ufeff\ud800\udc00\U000e0041👩❤aé漢می",
)


def random_text(rng: random.Random) -> str:
    count = rng.randrange(1, 30)
    if rng.random() < 0.2:
        return "".join(
            chr(rng.choice((rng.randrange(0x300), rng.randrange(0x110000)))) for _ in range(count)
        )
    return "".join(rng.choice(PIECES) for _ in range(count))


def check_random_texts(count: int) -> None:
    rng = random.Random(SEED)
    for number in range(count):
        text = random_text(rng)
        shown = sanitise(text)
        note = f"seed {SEED}, text {number}: {text!r}"
        assert not forbidden_in(shown), note
        assert not forbidden_in(reveal(text)), note
        assert sanitise(shown) == shown, note
        cuts = [rng.randrange(len(text) + 1) for _ in range(3)]
        assert in_pieces(text, *cuts) == shown, f"{note}, cut at {cuts}"


def test_random_texts_show_nothing_forbidden() -> None:
    check_random_texts(2_000)


@pytest.mark.soak
def test_many_random_texts_show_nothing_forbidden() -> None:
    check_random_texts(20_000)


def test_the_check_itself_sees_what_is_forbidden() -> None:
    # The positive control: unsanitised, most of the named cases would be caught.
    caught = [name for name, (printed, _) in NAMED.items() if forbidden_in(printed)]
    assert len(caught) > 90


def test_no_code_point_gets_through_that_is_forbidden() -> None:
    everything = "x".join(map(chr, range(0x110000)))
    assert not forbidden_in(reveal(everything))
    assert not forbidden_in("".join(sanitise(f"x{chr(code)}x") for code in range(0x3000)))


def test_an_endless_sequence_costs_no_memory() -> None:
    sanitiser = Sanitiser()
    chunk = "A" * (1 << 20)
    sanitiser.feed(f"before{ESC}]52;c;")
    tracemalloc.start()
    try:
        for _ in range(64):
            assert sanitiser.feed(chunk) == ""
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 10_000
    assert peak < 100_000
    assert sanitiser.feed("\x07after") + sanitiser.flush() == "after"


def test_a_flushed_sanitiser_is_as_new() -> None:
    sanitiser = Sanitiser()
    sanitiser.feed(f"👩{ESC}]0;title")
    assert sanitiser.flush() == ""
    assert sanitiser.feed("text\u200d") == "text⟨U+200D⟩"


def test_long_plain_text_is_quick() -> None:
    text = "some plain text, and a line\n" * 400_000
    start = time.process_time()
    assert sanitise(text) == text
    assert time.process_time() - start < 2


def test_revealing_a_long_hostile_text_takes_linear_time() -> None:
    start = time.process_time()
    assert reveal("\u202e" * 200_000).count("U+202E") == 200_000
    assert time.process_time() - start < 5


def test_without_newlines_everything_is_on_one_line() -> None:
    assert sanitise("a\nb\tc\r\nd", newlines=False) == "a b c d"
    assert sanitise("plain", newlines=False) == "plain"


def test_reveal_drops_nothing_of_a_command() -> None:
    # As flowing text this would read "echo hi": a shell would still run the rest.
    command = f"echo hi {ESC}]0;; rm -rf ~\x07"
    assert sanitise(command) == "echo hi "
    assert reveal(command) == "echo hi ␛]0;; rm -rf ~␇"


def test_reveal_shows_line_breaks_and_foreign_spaces() -> None:
    assert reveal("a\nb\tc\rd\u00a0e\u3000f") == "a␊b␉c␍d⟨U+00A0⟩e⟨U+3000⟩f"
    assert reveal("a\nb\tc\rd\u00a0e", newlines=True) == "a\nb\tc␍d⟨U+00A0⟩e"


def test_reveal_keeps_emoji_whole() -> None:
    assert (
        reveal("👩\u200d❤\ufe0f\u200d👨 1\ufe0f\u20e3") == "👩\u200d❤\ufe0f\u200d👨 1\ufe0f\u20e3"
    )


def test_a_single_line_fits_its_width() -> None:
    assert single_line("short", 10) == "short"
    assert single_line("exactly10!", 10) == "exactly10!"
    assert single_line("more than ten", 10) == "more than…"
    assert single_line("漢字漢字漢字", 6) == "漢字…"
    assert single_line("in no room at all", -3) == "…"
    assert single_line("two\nlines", 20) == "two␊lines"
    assert single_line(f"title{ESC}]0;x\x07", 40) == "title␛]0;x␇"


def test_a_single_line_of_combining_characters_is_cut_too() -> None:
    line = single_line("e" + "\u0301" * 100_000, 10)
    assert line.endswith("…")
    assert len(line) <= 81


def test_a_single_line_counts_joiners_as_nothing() -> None:
    family = "👨\u200d👩\u200d👧"
    assert single_line(family, 6) == family
