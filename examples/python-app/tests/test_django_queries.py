"""Django's ORM reads: lookups in texts, bytes and JSON, and the queries that it composes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections, models
from django.db.models import Count, F, Max, Q, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Length, Substr, Upper

from conftest import Servers
from django_pair import BODY, DATA, RAW, Sides, create_tables, empty, everything, fill
from django_sides import Author, Book

models.TextField.register_lookup(Length)


@pytest.fixture(scope="module", params=["", "_bound"], ids=["literals", "bound"])
def filled(servers: Servers, request: pytest.FixtureRequest) -> Iterator[Sides]:
    """The tests of this file only read, so the rows are written once."""
    create_tables(servers)
    both = Sides(servers, request.param)
    both.same(empty)
    both.same(fill)
    yield both
    connections.close_all()


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
