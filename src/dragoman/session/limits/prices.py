"""What tokens cost: prices of models, and how a model's own name finds its price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.facts import ModelTokens, TokenUsage

_MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a million tokens cost. Tokens of a kind without a price of its own cost as much as
    `input`. `seen_on` and `source` say when and where the price was read."""

    input: float
    output: float
    cached_read: float | None = None
    cached_write: float | None = None
    currency: str = "USD"
    seen_on: str = ""
    source: str = ""


Prices: TypeAlias = Mapping[str, Price]
"""By names of models in lower case, whole or as `plain_name` returns them."""

_PROVIDER = lazy_pattern(r"^.*[/|]|^(?:[a-z]+\.)?anthropic\.")
"""As routers and clouds put it before the name of a model."""
_VERSION = lazy_pattern(r"(?:\[1m\]|\([a-z-]+\)|-v\d+:\d+|[-@]\d{4}-?\d{2}-?\d{2}|-latest)$")
"""What says which release of the same model it is; only the end of a name."""


def plain_name(model: str) -> str:
    """The name without its provider and its date: `anthropic/claude-sonnet-5-5-20260915` is
    `claude-sonnet-5-5`."""
    name = _PROVIDER.sub("", model.strip().lower())
    while (shorter := _VERSION.sub("", name)) != name:
        name = shorter
    return name


def price_of(model: str, prices: Prices) -> Price | None:
    """None for a model that has none: a similar name is another model."""
    return prices.get(model.lower()) or prices.get(plain_name(model))


def amount_of(tokens: TokenUsage | ModelTokens, price: Price) -> float:
    """Agents count cached tokens as part of the input or in addition to it, and thoughts as part of
    the output or in addition to it: the total tells which."""
    read, written = _count(tokens.cached_read), _count(tokens.cached_write)
    thought, input_, output = _count(tokens.thought), _count(tokens.input), _count(tokens.output)
    rest = _count(tokens.total) - input_ - output
    if rest >= read + written:
        rest -= read + written
    else:
        input_ = max(0, input_ - read - written)
    if rest >= thought:
        output += thought
    return (
        input_ * price.input
        + read * _or_input(price.cached_read, price)
        + written * _or_input(price.cached_write, price)
        + output * price.output
    ) / _MILLION


def _count(told: int | None) -> int:
    return max(0, told or 0)


def _or_input(price: float | None, of: Price) -> float:
    return of.input if price is None else price
