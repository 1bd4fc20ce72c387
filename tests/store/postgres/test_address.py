"""An address is shown without its password, whatever is wrong with it."""

from __future__ import annotations

import pytest

from dragoman.errors import StoreError
from dragoman.store.postgres.database import Address

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


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:p@{SECRET}@db/team",
        f"postgresql://me:{SECRET}/word@db/team",
        f"postgresql://me:12/{SECRET}@db/team",
        f"postgresql://me@corp:{SECRET}@db/team",
        f"postgresql://db:{SECRET}/team",
        f"host=db dbname=postgresql://me:{SECRET}@db/team",
    ],
)
def test_a_password_that_ends_too_early_is_not_taken_for_something_else(address: str) -> None:
    with pytest.raises(StoreError, match="; percent-encode the password") as caught:
        Address(address)
    assert SECRET not in str(caught.value)
    assert "word" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize("ports", ["5432", "5432,5433", "5432,"])
def test_several_ports_are_understood(ports: str) -> None:
    assert Address(f"host=a,b port={ports} user=me").shown.startswith("postgresql://me@a,b:5432")


def test_what_the_address_says_beats_our_defaults() -> None:
    where = Address("postgresql://h/db?connect_timeout=77&application_name=mine")
    assert "connect_timeout=77" in where.conninfo
    assert "application_name=mine" in where.conninfo
