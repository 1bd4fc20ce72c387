"""The keys of a chat: sending, new lines, cancelling, leaving."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


def bindings(*, busy: Callable[[], bool], on_cancel: Callable[[], None]) -> KeyBindings:
    """`on_cancel` is for Esc while the agent is `busy`, and for Ctrl-C at any time.

    While someone looks for something in the history, these keys end the search, as always.
    """
    keys = KeyBindings()
    is_writing = ~is_searching
    is_busy = Condition(busy) & is_writing
    # At once with nothing typed; else Esc may be the beginning of Esc Enter.
    is_free = Condition(lambda: not _text())

    @keys.add("enter", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("escape", filter=is_busy & is_free, eager=True)
    @keys.add("escape", filter=is_busy)
    def _(event: KeyPressEvent) -> None:
        on_cancel()

    @keys.add("c-c", filter=is_writing)
    def _(event: KeyPressEvent) -> None:
        on_cancel()

    return keys


def _text() -> str:
    from prompt_toolkit.application import get_app

    return get_app().current_buffer.text
