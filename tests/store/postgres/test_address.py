"""An address is shown without its password, whatever is wrong with it."""

from __future__ import annotations

import pytest

from dragoman.errors import StoreError
from dragoman.store.postgres.address import Address

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"postgresql://me:{SECRET}@db.example:5433/team", "postgresql://me@db.example:5433/team"),
        (f"postgres://me:{SECRET}@db.example/team", "postgresql://me@db.example/team"),
        (f"postgresql://db.example/team?password={SECRET}", "postgresql://db.example/team"),
        (f"postgresql:///team?host=/run/pg&user=me&password={SECRET}", "postgresql://me@/team"),
        (f"postgresql://me:{SECRET}@a,b/team", "postgresql://me@a,b/team"),
    ],
)
def test_the_password_is_left_out(address: str, shown: str) -> None:
    where = Address(address)
    assert where.shown == shown
    assert SECRET not in repr(where)
    assert SECRET in where.conninfo


@pytest.mark.parametrize(
    "address",
    [f"postgresql://me:{SECRET}%zz@host/db", f"postgresql://h/db?pasword={SECRET}", f"x {SECRET}"],
)
def test_what_is_not_understood_is_not_quoted(address: str) -> None:
    with pytest.raises(StoreError) as caught:
        Address(address)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_what_the_address_says_beats_our_defaults() -> None:
    where = Address("postgresql://h/db?connect_timeout=77&application_name=mine")
    assert "connect_timeout=77" in where.conninfo
    assert "application_name=mine" in where.conninfo
