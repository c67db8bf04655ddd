"""Each value, in each column type, by each way a driver can send and fetch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb

from conftest import Pair, Servers, everything, is_reference
from values import BYTES, COLUMNS, JSONS, TEXTS, prose

CASES = [
    pytest.param(column, value, id=f"{column}-{name}")
    for column, values in COLUMNS.items()
    for name, value in values.items()
]

LARGE_CASES = [
    pytest.param(column, COLUMNS[column][name], id=column)
    for column, name in [
        ("body", "prose"),
        ("note", "above_threshold"),
        ("data", "document"),
        ("verbatim", "document"),
        ("raw", "large"),
    ]
]


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize(("column", "value"), CASES)
def test_extended_protocol(pair: Pair, column: str, value: Any, binary: bool) -> None:
    insert = f"insert into documents (id, {column}) values (%s, %s) returning id, {column}"
    returned = pair.run(insert, (1, value), binary=binary)
    assert returned[3] == 1
    pair.run(f"select {column} from documents", binary=binary)
    # Prepared on the server, so Describe and the result formats come from Bind alone.
    for _ in range(2):
        pair.run(
            f"select {column} from documents where id = %s", (1,), binary=binary, prepare=True
        )
    # A str goes as binary text, with its type, which has no assignment cast to json.
    cast = {"data": "::jsonb", "verbatim": "::json"}.get(column, "")
    pair.run(f"update documents set {column} = %b{cast} where id = %s", (value, 1), binary=binary)
    pair.run(f"select {column}, octet_length({column}::text) from documents", binary=binary)


@pytest.mark.parametrize(("column", "value"), CASES)
def test_simple_protocol(servers: Servers, column: str, value: Any) -> None:
    """psycopg's client-side binding writes the values into the statement as literals."""
    pair = Pair(servers, cursor_factory=psycopg.ClientCursor)
    pair.clear()
    pair.run(f"insert into documents (id, {column}) values (%s, %s)", (1, value))
    pair.run(f"select {column} from documents")
    pair.run(f"update documents set {column} = %s returning {column}", (value,))
    pair.run(f"select id, {column} is null, length({column}::text) from documents")
    pair.close()


@pytest.mark.parametrize(("column", "value"), LARGE_CASES)
def test_large_values_leave_the_row(
    pair: Pair, raw_values: Callable[..., list[Any]], column: str, value: Any
) -> None:
    """The comparisons of this file prove little unless values really are offloaded."""
    if not pair.servers.offloads:
        pytest.skip("Toastrack is not installed")
    pair.run(f"insert into documents (id, {column}) values (1, %s)", (value,))
    literals = psycopg.ClientCursor(pair.twin)
    literals.execute(f"insert into documents (id, {column}) values (2, %s)", (value,))
    stored = raw_values(column)
    assert len(stored) == 2
    assert all(is_reference(column, text) for text in stored), [text[:80] for text in stored]


def test_small_values_and_other_columns_stay(
    pair: Pair, raw_values: Callable[..., list[Any]]
) -> None:
    pair.run("insert into documents (id, body, small) values (1, 'short', %s)", (prose(9000),))
    assert raw_values("body") == ["short"]
    assert raw_values("small") == [prose(9000)]
    pair.run("select * from documents")


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_whole_rows(pair: Pair, binary: bool) -> None:
    """All types in one statement, NULL and inline values between offloaded ones."""
    rows = [
        (1, TEXTS["prose"], TEXTS["above_threshold"], JSONS["document"], JSONS["spaced"], BYTES["large"]),
        (2, None, "short", JSONS["string"], None, BYTES["empty"]),
        (3, TEXTS["mebibyte"], None, None, JSONS["large"], None),
        (4, "", "", "{}", "[]", b""),
    ]

    def insert(connection: psycopg.Connection[Any]) -> Any:
        cursor = connection.cursor()
        cursor.executemany(
            "insert into documents (id, body, note, data, verbatim, raw)"
            " values (%s, %s, %s, %s, %s, %s)",
            rows,
        )
        return cursor.rowcount

    assert pair.same(insert) == 4
    pair.run("select * from documents order by id", binary=binary)
    pair.run("table documents", binary=binary)


def test_typed_parameters(pair: Pair) -> None:
    """Python's own types: psycopg sends jsonb, json and bytea with their OIDs."""
    document = {"b": [1, 2.5, None, True], "a": {"text": prose(5000)}}
    pair.run(
        "insert into documents (id, data, verbatim, raw) values (%s, %s, %s, %s) returning *",
        (1, Jsonb(document), Json(document), BYTES["large"]),
    )
    pair.run("select data, verbatim from documents where data = %s", (Jsonb(document),))


@pytest.mark.parametrize(
    ("column", "value", "sqlstate"),
    [
        ("data", '{"a": ' + "x" * 5000, "22P02"),
        ("data", '{"a": "\\u0000' + "x" * 5000 + '"}', "22P05"),
        ("data", "", "22P02"),
        ("verbatim", "[1, 2" + " " * 5000, "22P02"),
        ("note", "x" * 3001, "22001"),
        ("note", "x" * 2990 + " " * 5 + "y" * 6, "22001"),
        ("id", "x" * 5000, "22P02"),
    ],
)
def test_refused_values(pair: Pair, column: str, value: str, sqlstate: str) -> None:
    """What Postgres refuses it refuses at the write, with the same error, and goes on."""
    insert = f"insert into documents (id, {column}) values (1, %s)"
    if column == "id":
        insert = "insert into documents (id) values (%s)"
    pair.run(insert, (value,), fails=sqlstate)
    pair.run(insert, (value,), fails=sqlstate, prepare=True)
    pair.run("select * from documents")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("note", "x" * 2500 + " " * 600),
        ("note", " " * 4000),
        ("verbatim", '"\\u0000' + "x" * 5000 + '"'),
    ],
)
def test_values_that_are_cut_or_read_later(pair: Pair, column: str, value: str) -> None:
    """varchar cuts blanks without a word; json takes what jsonb refuses."""
    pair.run(f"insert into documents (id, {column}) values (1, %s) returning *", (value,))
    pair.run(f"select {column}, length({column}::text) from documents")
    if column == "verbatim":
        pair.run("select verbatim::jsonb from documents", fails="22P05")


def test_a_copied_reference_is_ordinary_text(
    pair: Pair, raw_values: Callable[..., list[Any]]
) -> None:
    """A client that got hold of a reference and stores it as text reads the text back."""
    pair.run("insert into documents (id, body) values (1, %s)", (prose(5000),))
    [reference] = raw_values("body")
    pair.run("insert into documents (id, body, small) values (2, %s, %s)", (reference, reference))
    short = reference[:3000]
    pair.run("update documents set note = %s, data = %s", (short, Jsonb(short)))
    pair.run("select * from documents order by id")
    pair.run("select * from documents order by id", binary=True)


def test_bytea_output_escape(pair: Pair) -> None:
    pair.run("insert into documents (id, raw) values (1, %s)", (bytes(range(256)) * 20,))
    pair.run("set bytea_output = escape")
    pair.same(
        lambda connection: connection.execute("select raw from documents").pgresult.get_value(0, 0)
    )
    pair.run("select raw from documents", binary=True)


def test_client_encoding_latin1(pair: Pair) -> None:
    """Values go in and out in the session's encoding; what it cannot express is an error."""
    pair.run("insert into documents (id, body) values (1, %s)", ("é" * 4000,))
    pair.run("insert into documents (id, body) values (2, %s)", ("€" * 4000,))
    pair.run("set client_encoding = 'latin1'")
    pair.run("select body from documents where id = 1")
    pair.run("select body from documents where id = 2", fails="22P05")
    pair.run("insert into documents (id, body) values (3, %s)", ("ü" * 4000,))
    pair.run("set client_encoding = 'utf8'")
    pair.run("select body, length(body) from documents order by id")


def test_a_description_without_a_result(pair: Pair) -> None:
    """The types of a prepared statement, before any value was read."""

    def describe(connection: psycopg.Connection[Any]) -> Any:
        pgconn = connection.pgconn
        pgconn.prepare(
            b"described",
            b"insert into documents (id, body, note, data, verbatim, raw)"
            b" values ($1, $2, $3, $4, $5, $6) returning *",
        )
        result = pgconn.describe_prepared(b"described")
        return (
            [result.param_type(n) for n in range(result.nparams)],
            [(result.fname(n), result.ftype(n), result.fmod(n), result.fsize(n)) for n in range(result.nfields)],
        )

    parameters, fields = pair.same(describe)
    assert parameters == [23, 25, 1043, 3802, 114, 17]
    assert [field[1] for field in fields] == [23, 25, 1043, 3802, 114, 17, 25]


def test_everything_is_compared(pair: Pair) -> None:
    """The comparison itself can fail: a difference in one byte is seen."""
    pair.plain.execute("insert into documents (id, body) values (1, %s)", (prose(5000),))
    pair.twin.execute("insert into documents (id, body) values (1, %s)", (prose(4999) + "!",))
    with pytest.raises(pytest.fail.Exception):
        pair.run("select body from documents")
    assert everything(pair.plain.execute("select 1"))[2] == [(1,)]
