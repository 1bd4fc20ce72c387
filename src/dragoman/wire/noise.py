"""What arrives that is no message, such as a banner: counted, and the first of it kept."""

from __future__ import annotations

import msgspec


class Noise(msgspec.Struct):
    """How many lines there were, and the first few of them."""

    lines: int = 0
    sample: str = ""

    def add(self, frame: bytes) -> None:
        self.lines += 1
        if len(self.sample) < 2000:
            self.sample += frame[:500].decode("utf-8", "replace") + "\n"
