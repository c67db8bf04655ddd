"""SQLAlchemy: the models of the application, used in the ways an ORM is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, undefer

from conftest import Servers, is_reference, shorten
from shelf import library
from shelf.models import Document
from values import BYTES, prose

LARGE_DATA = {"title": "large", "items": [{"n": n, "text": "word " * 10} for n in range(300)]}
COLUMNS = ("id", "name", "abstract", "body", "data")


class Engines:
    """The same model on both sides."""

    def __init__(self, servers: Servers) -> None:
        self.plain = library.connect(servers.plain)
        self.twin = library.connect(servers.twin)

    def same(self, action: Callable[[Session], Any]) -> Any:
        plain, twin = run(self.plain, action), run(self.twin, action)
        if plain != twin:
            pytest.fail(f"plain: {shorten(plain)}\n twin: {shorten(twin)}")
        return plain


def run(engine: Engine, action: Callable[[Session], Any]) -> Any:
    try:
        with Session(engine) as session, session.begin():
            return action(session)
    except DBAPIError as error:
        return type(error).__name__, getattr(error.orig, "sqlstate", None)


@pytest.fixture
def engines(servers: Servers) -> Iterator[Engines]:
    both = Engines(servers)
    both.same(lambda session: session.execute(text("truncate shelf restart identity")).rowcount)
    yield both
    both.plain.dispose()
    both.twin.dispose()


def everything(session: Session) -> list[Any]:
    documents = session.scalars(
        select(Document).order_by(Document.id).options(undefer(Document.content))
    )
    return [
        ([getattr(document, column) for column in COLUMNS], document.content)
        for document in documents
    ]


def fill(session: Session) -> None:
    session.add_all(
        [
            Document(name="large", abstract=prose(4000), body=prose(50_000), data=LARGE_DATA),
            Document(name="small", abstract="a", body="b", data={"title": "small"}),
            Document(name="file", content=BYTES["large"]),
            Document(name="nothing"),
            Document(name="unicode", body="日本語 😀 é" * 2000, data={"k": "日本語 😀" * 1000}),
        ]
    )


def test_add_and_read(engines: Engines) -> None:
    engines.same(fill)
    assert len(engines.same(everything)) == 5


def test_large_values_leave_the_row(
    engines: Engines, servers: Servers, raw_values: Callable[..., list[Any]]
) -> None:
    """Rows added one by one leave; a bulk INSERT ... SELECT may keep its values inline."""
    if not servers.offloads:
        pytest.skip("Toastrack is not installed")
    for values in ({"body": prose(50_000)}, {"data": LARGE_DATA}, {"content": BYTES["large"]}):
        engines.same(lambda session: session.add(Document(name=next(iter(values)), **values)))
    for column in ("body", "data", "content"):
        stored = [value for value in raw_values(column, "shelf") if value is not None]
        assert [is_reference(column, value) for value in stored] == [True], stored[0][:80]


def test_change_one_attribute(engines: Engines) -> None:
    engines.same(fill)

    def change(session: Session) -> Any:
        document = session.scalars(select(Document).where(Document.name == "large")).one()
        document.data["title"] = "changed"
        document.body = (document.body or "") + "and more"
        session.flush()
        session.refresh(document)
        return document.data, document.body

    engines.same(change)
    engines.same(everything)


def test_many_at_once(engines: Engines) -> None:
    """SQLAlchemy turns these into INSERT ... SELECT ... FROM (VALUES ...) RETURNING."""

    def work(session: Session) -> Any:
        documents = [
            {"name": f"document {n}", "body": f"{n} {prose(4000)}", "data": {"n": n, "t": prose(3000)}}
            for n in range(50)
        ]
        returned = session.execute(insert(Document).returning(Document.id, Document.body), documents)
        session.execute(insert(Document), [{"name": f"more {n}", "body": prose(3000)} for n in range(5)])
        return sorted(tuple(row) for row in returned)

    assert len(engines.same(work)) == 50
    engines.same(everything)


def test_update_and_delete_statements(engines: Engines) -> None:
    engines.same(fill)
    engines.same(
        lambda session: session.scalars(
            update(Document).where(Document.name == "small").values(body=prose(9000)).returning(Document.body)
        ).all()
    )
    engines.same(
        lambda session: session.execute(
            update(Document), [{"id": 1, "body": prose(7000)}, {"id": 2, "data": LARGE_DATA}]
        )
        and None
    )
    engines.same(
        lambda session: session.scalars(
            delete(Document).where(Document.body == prose(7000)).returning(Document.data)
        ).all()
    )
    engines.same(everything)


def test_upsert(engines: Engines) -> None:
    def work(session: Session) -> Any:
        seen = []
        for body in (prose(5000), prose(6000), "short", prose(5000)):
            statement = upsert(Document).values(name="one", body=body, data={"body": body})
            statement = statement.on_conflict_do_update(
                index_elements=["name"],
                set_={"body": statement.excluded.body, "data": statement.excluded.data},
            )
            returned = session.execute(statement.returning(Document.name, Document.body, Document.data))
            seen.append(tuple(returned.one()))
        return seen

    assert len(engines.same(work)) == 4


@pytest.mark.parametrize(
    "query",
    [
        select(Document.name, func.length(Document.body)).order_by(Document.id),
        select(Document.name, func.octet_length(Document.content)).order_by(Document.id),
        select(Document.name).where(Document.body == prose(50_000)),
        select(Document.name).where(Document.body.contains("lazy dog")).order_by(Document.id),
        select(Document.name).where(Document.abstract.startswith("The quick")),
        select(Document.name).where(Document.body.in_([prose(50_000), "b"])).order_by(Document.id),
        select(Document.name, Document.data["title"].astext).order_by(Document.id),
        select(Document.name).where(Document.data["title"].astext == "large"),
        select(Document.name).where(Document.data.contains({"title": "small"})),
        select(Document.name).where(Document.data.has_key("k")),
        select(Document.name, Document.data[("items", "0", "n")].as_integer()).order_by(Document.id),
        select(func.count(Document.body.distinct())),
        select(Document.body).order_by(Document.body.desc().nulls_last()),
        select(Document.name, Document.body + "!").order_by(Document.id),
        select(func.coalesce(Document.body, "none")).order_by(Document.id),
    ],
    ids=str,
)
def test_queries(engines: Engines, query: Any) -> None:
    engines.same(fill)
    result = engines.same(lambda session: [tuple(row) for row in session.execute(query)])
    assert isinstance(result, list), result


def test_stream(engines: Engines) -> None:
    """yield_per uses a server-side cursor."""

    def work(session: Session) -> Any:
        fill(session)
        session.flush()
        stream = session.execute(
            select(Document.id, Document.body, Document.content).order_by(Document.id),
            execution_options={"yield_per": 2},
        )
        return [tuple(row) for row in stream]

    assert len(engines.same(work)) == 5


def test_errors(engines: Engines) -> None:
    engines.same(fill)
    refused = engines.same(
        lambda session: session.execute(insert(Document).values(name="x", abstract="y" * 4001))
    )
    assert refused == ("DataError", "22001")
    refused = engines.same(
        lambda session: session.execute(insert(Document).values(name="large", body=prose(5000)))
    )
    assert refused == ("IntegrityError", "23505")
    refused = engines.same(
        lambda session: session.execute(insert(Document).values(name="nul", data={"a": "\0" + prose(5000)}))
    )
    assert refused == ("DataError", "22P05")
    engines.same(everything)
