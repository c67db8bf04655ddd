"""Comparing what Django gives on both databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, connections, models

from conftest import Servers
from django_sides import OFFLOADED, Author, Book
from sides import agree
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


def create_tables(servers: Servers) -> None:
    """Creates the tables of both sides, once a run, and moves the twin's columns."""
    if "django_book" in connections["twin"].introspection.table_names():
        return
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


def empty(using: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute("truncate django_author, django_book restart identity")
