"""What was used, in words: what is not known is said to be unknown, and a sum with gaps is `≥`."""

from __future__ import annotations

from dragoman.session.limits.spending import Spending


def token_sum(spent: Spending) -> str:
    if spent.tokens is None:
        return "unknown"
    return f"{_at_least(spent.turns_without_tokens)}{spent.tokens.total:,}"


def cost_sum(spent: Spending) -> str:
    if not spent.cost:
        return "unknown"
    return f"{_at_least(spent.turns_without_cost)}{_sums(spent.cost)}"


def _sums(amounts: dict[str, float]) -> str:
    return ", ".join(f"{money(amounts[name])} {name}" for name in sorted(amounts))


def _at_least(missing: int) -> str:
    return "≥ " if missing else ""


def money(amount: float) -> str:
    """To a cent, or to the first digits of what is less."""
    if amount >= 1 or not amount:
        return f"{amount:,.2f}"
    if amount < 1e-6:
        return "< 0.000001"
    return f"{amount:.{4 if amount >= 0.01 else 6}f}"


def duration(seconds: float) -> str:
    """As `0:42` or `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def counted(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def in_short(spent: Spending) -> str:
    """One line: turns, tokens, money, time."""
    tokens, cost = token_sum(spent), cost_sum(spent)
    return ", ".join(
        (
            counted(spent.turns, "turn"),
            "tokens unknown" if tokens == "unknown" else f"{tokens} tokens",
            "cost unknown" if cost == "unknown" else cost + _estimated(spent),
            duration(spent.seconds),
        )
    )


def _estimated(spent: Spending) -> str:
    if not spent.estimated:
        return ""
    return " (estimated)" if spent.estimated == spent.cost else " (partly estimated)"


def gaps(spent: Spending) -> list[str]:
    """What the sums leave out, and what in them was not reported; a sentence each."""
    told: list[str] = []
    if spent.turns_without_tokens:
        turns = counted(spent.turns_without_tokens, "turn")
        told.append(f"the tokens of {turns} are not known, or only in part")
    if spent.turns_without_cost:
        turns = counted(spent.turns_without_cost, "turn")
        told.append(f"the cost of {turns} is not known, or only in part")
    if spent.estimated:
        told.append(f"{_sums(spent.estimated)} estimated from the prices of the models")
    return told
