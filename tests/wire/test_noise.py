from __future__ import annotations

from dragoman.wire.framing import Noise


def test_lines_are_counted_and_the_first_of_them_kept() -> None:
    noise = Noise()
    noise.add(b"\xffhello")
    noise.add(b"x" * 5000)
    assert (noise.lines, noise.sample) == (2, "\ufffdhello\n" + "x" * 500 + "\n")


def test_of_many_lines_little_is_kept() -> None:
    noise = Noise()
    for _ in range(1000):
        noise.add(b"y" * 1000)
    assert noise.lines == 1000
    assert len(noise.sample) < 3000
