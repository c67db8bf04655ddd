"""Django's ORM, with literals (its default) and with parameters bound in the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connections, models, transaction
from django.db.models import Count, F, Max, Q, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat, Length, Substr, Upper

from conftest import Servers
from django_sides import OFFLOADED, Author, Book
from sides import agree, assert_offloaded
from values import BYTES, JSONS, TEXTS, prose

BODY, OTHER, RAW = TEXTS["prose"], TEXTS["large"], BYTES["large"]
DATA = json.loads(JSONS["document"] or "")
FIELDS = ["id", "author_id", "name", "abstract", "body", "data", "content", "version"]


class Sides:
    """The names of the two databases."""

    def __init__(self, servers: Servers, suffix: str) -> None:
        self.servers = servers
        self.plain, self.twin = f"plain{suffix}", f"twin{suffix}"

    def same(self, action: Callable[[str], Any]) -> Any:
        """Calls `action` with the name of each database; checks that the outcome is the same."""
        return agree(outcome(action, self.plain), outcome(action, self.twin))


def outcome(action: Callable[[str], Any], using: str) -> Any:
    try:
        return action(using)
    except DatabaseError as error:
        cause = error.__cause__
        return type(error).__name__, getattr(cause, "sqlstate", None)


def everything(using: str, rows: models.QuerySet[Any] | None = None) -> list[Any]:
    """All fields of all books, bytes as bytes."""
    books = Book.objects.using(using).order_by("id") if rows is None else rows
    return [
        tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        for row in books.values_list(*FIELDS)
    ]


@pytest.fixture(scope="module")
def tables(servers: Servers) -> Iterator[Servers]:
    for using in ("plain", "twin"):
        with connections[using].schema_editor() as editor:
            editor.create_model(Author)
            editor.create_model(Book)
    if servers.offloads:
        # Through Toastrack, which looks at the schema again after DDL of its own sessions at once.
        with connections["twin"].cursor() as cursor:
            for table, columns in OFFLOADED.items():
                changes = ", ".join(f"alter {name} type toastrack.{kind}" for name, kind in columns.items())
                cursor.execute(f"alter table {table} {changes}")
    yield servers
    connections.close_all()


@pytest.fixture(params=["", "_bound"], ids=["literals", "bound"])
def sides(tables: Servers, request: pytest.FixtureRequest) -> Sides:
    both = Sides(tables, request.param)

    def empty(using: str) -> None:
        with connections[using].cursor() as cursor:
            cursor.execute("truncate django_author, django_book restart identity")

    both.same(empty)
    return both


def fill(using: str) -> None:
    author = Author.objects.using(using).create(name=f"author {BODY}")
    Book.objects.using(using).bulk_create(
        [
            Book(
                name=f"book {n}",
                author=author if n % 2 else None,
                abstract=prose(4000 - n),
                body=f"{n} {BODY}" if n % 3 else f"small {n}",
                data={**DATA, "n": n} if n % 4 else {"n": n, "a": [1, None]},
                content=RAW[n:] if n % 5 else None,
            )
            for n in range(24)
        ],
        batch_size=10,
    )


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


LOOKUPS: dict[str, Q] = {
    "exact": Q(body=f"1 {BODY}"),
    "iexact": Q(body__iexact=f"1 {BODY}".upper()),
    "contains": Q(body__contains="it's \"quoted\""),
    "icontains": Q(body__icontains="FOX"),
    "startswith": Q(abstract__startswith="The quick"),
    "endswith": Q(body__endswith=BODY[-10:]),
    "regex": Q(body__regex=r"^\d+ The"),
    "in": Q(body__in=[f"1 {BODY}", f"2 {BODY}", "small 3"]),
    "gt": Q(body__gt="3"),
    "isnull": Q(content__isnull=True),
    "bytes": Q(content=RAW[1:]),
    "length": Q(body__length__gt=10_000),
    "data exact": Q(data={**DATA, "n": 1}),
    "data contains": Q(data__contains={"n": 5}),
    "data contained": Q(data__contained_by={"n": 4, "a": [1, None], "more": 1}),
    "data has key": Q(data__has_key="items"),
    "data has keys": Q(data__has_keys=["items", "zebra"]),
    "data has any keys": Q(data__has_any_keys=["a", "none"]),
    "data key": Q(data__n=7),
    "data path": Q(data__items__0__name="item 0"),
    "data key text": Q(data__title__icontains="DOCUMENT"),
    "data key range": Q(data__n__gte=20),
    "data key in": Q(data__n__in=[1, 2, 3]),
    "data key null": Q(data__a__1=None),
    "data key missing": Q(data__items__isnull=True),
    "author": Q(author__name__startswith="author"),
    "not": ~Q(body__contains="fox"),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_lookups(filled: Sides, name: str) -> None:
    models.TextField.register_lookup(Length)

    def read(using: str) -> Any:
        books = Book.objects.using(using).filter(LOOKUPS[name]).order_by("id")
        return books.count(), books.exists(), everything(using, books)

    count, _, rows = filled.same(read)
    assert 0 < count == len(rows)


QUERIES: dict[str, Callable[[Any], Any]] = {
    "annotate": lambda books: books.annotate(size=Length("body"), loud=Upper(Substr("body", 1, 30))).values_list("id", "size", "loud"),
    "only": lambda books: [(book.id, book.body) for book in books.only("body")],
    "defer": lambda books: [(book.id, book.abstract, book.body) for book in books.defer("body")[:3]],
    "key transform": lambda books: books.annotate(title=KT("data__title"), first=F("data__items__0")).values_list("id", "title", "first"),
    "cast": lambda books: books.annotate(plain=Cast("data", models.TextField())).values_list("id", "plain"),
    "coalesce": lambda books: books.annotate(some=Coalesce("body", "abstract", Value(BODY), output_field=models.TextField())).values_list("id", "some"),
    "distinct": lambda books: books.order_by("body").values_list("body", flat=True).distinct(),
    "group": lambda books: books.order_by("data__n").values("data__n").annotate(many=Count("id"), last=Max("body")),
    "aggregate": lambda books: sorted(books.aggregate(last=Max("body"), count=Count("body", distinct=True)).items()),
    "union": lambda books: books.order_by().values_list("body").union(books.order_by().values_list("abstract"), all=True).count(),
    "union rows": lambda books: books.order_by().values_list("body").union(books.order_by().values_list("abstract")).order_by("body"),
    "subquery": lambda books: books.filter(body__in=books.order_by().filter(pk__lt=5).values("body")).values_list("id"),
    "order": lambda books: books.order_by("-body", "id").values_list("id", "body")[2:9],
    "order by key": lambda books: books.order_by("data__n").values_list("id", "data__n"),
    "explain": lambda books: "Scan" in books.explain(analyze=True, costs=False),
    "prefetch": lambda books: [author.name for author in Author.objects.using(books.db).prefetch_related("book_set")],
    "raw": lambda books: [(book.id, book.body) for book in books.raw("select id, body from django_book where body like %s order by id", ["%fox%"])],
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries(filled: Sides, name: str) -> None:
    def read(using: str) -> Any:
        found = QUERIES[name](Book.objects.using(using).order_by("id"))
        return list(found) if isinstance(found, models.QuerySet) else found

    assert filled.same(read)


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
