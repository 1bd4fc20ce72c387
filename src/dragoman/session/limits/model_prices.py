"""List prices of models, for agents that do not say what a turn costs.

US dollars for a million tokens, at the standard tier: no surcharge for long prompts, no discount
for batches. `prices` in the settings override each. To correct a row, change it and its date; a
model that is not here has no price, and its cost is unknown.
"""

from __future__ import annotations

from typing import Final

from dragoman.session.limits.prices import Price, Prices


def all_prices(own: Prices) -> Prices:
    """Those of the table, and one's own, which count more."""
    return {**MODEL_PRICES, **own}


def _price(
    input_: float,
    output: float,
    read: float | None = None,
    write: float | None = None,
    *,
    on: str,
    at: str,
) -> Price:
    return Price(
        input=input_, output=output, cached_read=read, cached_write=write, seen_on=on, source=at
    )


_ANTHROPIC = "platform.claude.com/docs, pricing"
_OPENAI = "developers.openai.com, pricing"
_GOOGLE = "ai.google.dev/gemini-api/docs/pricing"
_MOONSHOT = "platform.kimi.ai/docs/pricing"
_DEEPSEEK = "api-docs.deepseek.com, off-peak"
_QWEN = "alibabacloud.com, Model Studio, international"
_MISTRAL = "mistral.ai/pricing"

MODEL_PRICES: Final[Prices] = {
    "claude-fable-5-1": _price(10, 50, 0.25, 12.5, on="2026-10-16", at=_ANTHROPIC),
    "claude-fable-5": _price(10, 50, 1, 12.5, on="2026-10-16", at=_ANTHROPIC),
    "claude-opus-5-5": _price(4, 20, 0.2, 5, on="2026-10-16", at=_ANTHROPIC),
    "claude-opus-5": _price(5, 25, 0.5, 6.25, on="2026-10-16", at=_ANTHROPIC),
    "claude-opus-4-8": _price(5, 25, 0.5, 6.25, on="2026-10-16", at=_ANTHROPIC),
    "claude-opus-4-7": _price(5, 25, 0.5, 6.25, on="2026-10-16", at=_ANTHROPIC),
    "claude-opus-4-6": _price(5, 25, 0.5, 6.25, on="2026-10-16", at=_ANTHROPIC),
    "claude-opus-4-5": _price(5, 25, 0.5, 6.25, on="2026-10-16", at=_ANTHROPIC),
    "claude-sonnet-5-5": _price(2, 10, 0.1, 2.5, on="2026-10-16", at=_ANTHROPIC),
    "claude-sonnet-5": _price(2, 10, 0.2, 2.5, on="2026-10-16", at=_ANTHROPIC),
    "claude-sonnet-4-6": _price(3, 15, 0.3, 3.75, on="2026-10-16", at=_ANTHROPIC),
    "claude-sonnet-4-5": _price(3, 15, 0.3, 3.75, on="2026-10-16", at=_ANTHROPIC),
    "claude-haiku-5-5": _price(0.1, 0.5, 0.01, 0.125, on="2026-10-16", at=_ANTHROPIC),
    "claude-haiku-4-5": _price(1, 5, 0.1, 1.25, on="2026-10-16", at=_ANTHROPIC),
    "gpt-6.1-sol": _price(2, 10, 0.1, on="2026-09-30", at=_OPENAI),
    "gpt-6-astra": _price(10, 50, 1, on="2026-09-07", at=_OPENAI),
    "gpt-6-sol": _price(2, 10, 0.2, 2.5, on="2026-09-23", at=_OPENAI),
    "gpt-6-luna": _price(0.1, 0.5, 0.01, 0.125, on="2026-09-23", at=_OPENAI),
    "gpt-5.6-terra": _price(2, 12, 0.2, on="2026-08-01", at=_OPENAI),
    "gpt-5.6-luna": _price(0.2, 1.2, 0.02, on="2026-08-01", at=_OPENAI),
    "gpt-5": _price(1.25, 10, 0.125, on="2025-08-07", at=_OPENAI),
    "gpt-5-codex": _price(1.25, 10, 0.125, on="2025-09-23", at=_OPENAI),
    "gpt-5-mini": _price(0.25, 2, 0.025, on="2025-08-07", at=_OPENAI),
    "gemini-3.8-flash": _price(0.75, 3.75, 0.075, on="2026-10-07", at=_GOOGLE),
    "gemini-2.5-pro": _price(1.25, 10, 0.125, on="2025-12-01", at=_GOOGLE),
    "gemini-2.5-flash": _price(0.3, 2.5, 0.03, on="2025-12-01", at=_GOOGLE),
    "kimi-k3": _price(3, 15, 0.3, on="2026-07-18", at=_MOONSHOT),
    "kimi-k2.7-code": _price(0.95, 4, 0.19, on="2026-07-18", at=_MOONSHOT),
    "deepseek-flash": _price(0.15, 0.6, 0.003, on="2026-10-27", at=_DEEPSEEK),
    "deepseek-v4-pro": _price(0.66, 1.98, 0.022, on="2026-10-27", at=_DEEPSEEK),
    "qwen3.7-plus": _price(0.4, 1.6, on="2026-06-03", at=_QWEN),
    "qwen3-coder-plus": _price(1, 5, on="2025-09-23", at=_QWEN),
    "mistral-medium-3.5": _price(1.5, 7.5, on="2026-05-22", at=_MISTRAL),
    "codestral": _price(0.3, 0.9, on="2026-09-04", at=_MISTRAL),
}
"""By the plain names of the models."""
