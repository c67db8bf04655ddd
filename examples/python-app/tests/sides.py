"""Comparing the two sides, whatever the driver: what a statement gives, or how it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from conftest import Servers, is_reference, shorten
from values import BYTES, COLUMNS

COLUMN_CASES = [
    pytest.param(column, value, id=f"{column}-{name}")
    for column, values in COLUMNS.items()
    for name, value in values.items()
    # The largest values go through once, with psycopg; here they would only cost time.
    if value is None or len(value) < 500_000 or name == "mebibyte"
]

LARGE: dict[str, Any] = {
    "body": COLUMNS["body"]["prose"],
    "note": COLUMNS["note"]["above_threshold"],
    "data": COLUMNS["data"]["document"],
    "verbatim": COLUMNS["verbatim"]["document"],
    "raw": BYTES["large"],
}


def agree(plain: Any, twin: Any) -> Any:
    """Fails, briefly, unless both are equal and of the same Python types; returns the outcome."""
    if plain != twin:
        pytest.fail(f"plain: {shorten(plain)}\n twin: {shorten(twin)}")
    assert repr(plain) == repr(twin), "equal, but of other Python types"
    return plain


def assert_offloaded(
    servers: Servers, raw_values: Callable[..., list[Any]], columns: Iterable[str]
) -> None:
    """Checks that the rows of the twin hold references, none of them longer than 64 bytes."""
    if not servers.offloads:
        pytest.skip("Toastrack is not installed")
    for column in columns:
        stored = [text for text in raw_values(column) if text is not None]
        assert stored, column
        for text in stored:
            assert is_reference(column, text), (column, text[:80])
            # bytea prints as \x and two digits a byte.
            assert len(text) <= (2 + 2 * 64 if text.startswith("\\x") else 64)
