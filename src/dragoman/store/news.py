"""Who wants to know when something may be new in the store, and whether anybody does."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.store.writer import Writer


class News:
    """Has the writer look for what other processes wrote while somebody is subscribed."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        writer.on_news = self._tell
        self._wakes: dict[object, Callable[[], None]] = {}

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._wakes[token] = wake
        if len(self._wakes) == 1:
            self._writer.watch(True)

        def end() -> None:
            if self._wakes.pop(token, None) is not None and not self._wakes:
                self._writer.watch(False)

        return end

    def _tell(self) -> None:
        for wake in list(self._wakes.values()):
            wake()
