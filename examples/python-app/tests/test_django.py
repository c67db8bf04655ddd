"""Django's ORM writes, with literals (its default) and with parameters bound in the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Substr, Upper

from conftest import Servers
from django_pair import BODY, DATA, OTHER, RAW, Sides, create_tables, empty, everything, fill
from django_sides import Book
from sides import assert_offloaded
from values import BYTES, JSONS, TEXTS, prose


@pytest.fixture(scope="module")
def tables(servers: Servers) -> Iterator[Servers]:
    create_tables(servers)
    yield servers
    connections.close_all()


@pytest.fixture(params=["", "_bound"], ids=["literals", "bound"])
def sides(tables: Servers, request: pytest.FixtureRequest) -> Sides:
    both = Sides(tables, request.param)
    both.same(empty)
    return both


@pytest.fixture
def filled(sides: Sides) -> Sides:
    sides.same(fill)
    return sides


def test_bulk_create(filled: Sides, raw_values: Callable[..., list[Any]]) -> None:
    assert len(filled.same(everything)) == 24
    if filled.servers.offloads:
        stored = [text for text in raw_values("body", "django_book") if not text.startswith("small")]
        assert len(stored) == 16
        assert all(text.startswith("toast:") and len(text) <= 64 for text in stored)


def test_large_values_leave_the_row(sides: Sides, raw_values: Callable[..., list[Any]]) -> None:
    sides.same(
        lambda using: Book.objects.using(using)
        .create(name="one", abstract=prose(4000), body=BODY, data=DATA, content=RAW)
        .pk
    )
    for column in ("abstract", "body", "data", "content"):
        assert_offloaded(sides.servers, lambda name: raw_values(name, "django_book"), [column])
    sides.same(everything)


@pytest.mark.parametrize("field", ["body", "data", "content"])
def test_values(sides: Sides, field: str) -> None:
    """Each value of the field: created, read back, saved again, updated."""
    values = {"body": TEXTS, "data": JSONS, "content": BYTES}[field]

    def work(using: str) -> Any:
        books, seen = Book.objects.using(using), []
        for name, value in values.items():
            if field == "data" and value is not None:
                value = json.loads(str(value))
            if field == "body" and value is not None and len(value) > 500_000:
                continue
            book = books.create(name=name, **{field: value})
            book.refresh_from_db()
            seen.append(getattr(book, field))
            book.version += 1
            book.save()
            book.body = "changed"
            book.save(update_fields=["body"])
            books.filter(pk=book.pk).update(**{field: value})
        return [bytes(item) if isinstance(item, memoryview) else item for item in seen], everything(using)

    assert len(sides.same(work)[1]) >= len(values) - 2


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_iterator(filled: Sides, chunk: int) -> None:
    """Server-side cursors, as Django declares them (WITH HOLD outside a transaction)."""

    def read(using: str) -> Any:
        books = Book.objects.using(using).order_by("id")
        seen = [book.body for book in books.iterator(chunk_size=chunk)]
        with transaction.atomic(using):
            for book in books.select_related("author").iterator(chunk_size=chunk):
                seen.append((book.data, bytes(book.content or b""), book.author and book.author.name))
                if book.pk % 10 == 0:
                    seen.append(books.get(pk=book.pk - 1).abstract)
        first = books.iterator(chunk_size=chunk)
        seen.append(next(first).body)
        first.close()
        return seen

    assert len(filled.same(read)) > 48


def test_select_for_update(filled: Sides) -> None:
    def work(using: str) -> Any:
        books, seen = Book.objects.using(using), []
        with transaction.atomic(using):
            for book in books.select_for_update(skip_locked=True, of=("self",)).filter(pk__lt=8).order_by("pk"):
                seen.append(book.body)
                book.body = (book.body or "") + " locked"
                book.save(update_fields=["body"])
        return seen, everything(using)

    filled.same(work)


def test_get_or_create_and_update_or_create(sides: Sides) -> None:
    def work(using: str) -> Any:
        books, seen = Book.objects.using(using), []
        for body in (BODY, OTHER, "short"):
            book, created = books.get_or_create(name="one", defaults={"body": body, "data": DATA})
            seen.append((book.body, created))
            book, created = books.update_or_create(name="two", defaults={"body": body, "content": RAW})
            seen.append((book.body, created))
            book, created = books.get_or_create(body=f"{body}!", defaults={"name": f"{len(body)}"})
            seen.append((book.name, created))
            book, created = books.get_or_create(body=f"{body}!")
            seen.append((book.name, created))
        return seen, everything(using)

    sides.same(work)


def test_upserts(sides: Sides) -> None:
    def work(using: str) -> Any:
        books = Book.objects.using(using)
        for body in (BODY, OTHER):
            books.bulk_create(
                [Book(name=f"{n}", body=f"{n} {body}", data={"body": body}) for n in range(5)],
                update_conflicts=True,
                unique_fields=["name"],
                update_fields=["body", "data"],
            )
            books.bulk_create([Book(name="1", body="ignored"), Book(name="new", body=body)], ignore_conflicts=True)
        return everything(using)

    assert len(sides.same(work)) == 6


def test_updates(filled: Sides) -> None:
    def work(using: str) -> Any:
        books = Book.objects.using(using)
        seen = [
            books.filter(pk__lte=3).update(body=OTHER),
            books.filter(pk=4).update(body=Concat(F("body"), Value(" more"))),
            books.filter(pk=5).update(body=Upper("abstract"), data={"new": BODY}),
            books.filter(pk=6).update(abstract=Substr("body", 1, 3000), version=F("version") + 1),
            books.filter(body=OTHER).update(data=None, content=RAW),
        ]
        some = list(books.filter(pk__gt=10).order_by("pk"))
        for book in some:
            book.body, book.data = f"bulk {book.pk} {OTHER}", {"pk": book.pk, "text": BODY}
        seen.append(books.bulk_update(some, ["body", "data"], batch_size=4))
        seen.append(books.filter(body__startswith="bulk 12").delete())
        return seen, everything(using)

    filled.same(work)


def test_transactions_and_savepoints(sides: Sides) -> None:
    def work(using: str) -> Any:
        books, seen = Book.objects.using(using), []
        with transaction.atomic(using):
            books.create(name="one", body=BODY)
            try:
                with transaction.atomic(using):
                    books.update(body=OTHER)
                    books.create(name="one", body=OTHER)
            except DatabaseError as error:
                seen.append(type(error).__name__)
            seen.append(everything(using))
            with transaction.atomic(using):
                books.create(name="two", body=OTHER)
        try:
            with transaction.atomic(using, durable=True):
                books.update(body="gone")
                raise ValueError("rolled back")
        except ValueError:
            seen.append(everything(using))
        return seen

    assert sides.same(work)[0] == "IntegrityError"


def test_refused_values(sides: Sides) -> None:
    def create(**fields: Any) -> Callable[[str], Any]:
        return lambda using: Book.objects.using(using).create(name="refused", **fields).pk

    assert sides.same(create(abstract="x" * 4001)) == ("DataError", "22001")
    assert sides.same(create(data={"text": "\0" + "x" * 5000})) == ("DataError", "22P05")
    assert isinstance(sides.same(create(body=BODY)), int)
    assert sides.same(create(body=BODY)) == ("IntegrityError", "23505")
    sides.same(everything)
