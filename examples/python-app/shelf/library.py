"""What the application does, apart from reading the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine, create_engine, func, make_url, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, undefer

from .models import Base, Document


def connect(url: str) -> Engine:
    """An engine for a URL as libpq, psql and other programs take it."""
    return create_engine(make_url(url).set(drivername="postgresql+psycopg"))


def create_tables(engine: Engine) -> None:
    """Creates what is missing."""
    Base.metadata.create_all(engine)


def from_file(path: Path) -> dict[str, object]:
    """The columns of one file."""
    content = path.read_bytes()
    columns: dict[str, object] = dict.fromkeys(("abstract", "body", "data", "content"))
    columns["name"] = path.name
    try:
        text = content.decode()
    except UnicodeDecodeError:
        columns["content"] = content
        return columns
    if "\0" in text:
        columns["content"] = content
        return columns
    if path.suffix == ".json":
        parsed = json.loads(text)
        columns["data"] = parsed if isinstance(parsed, dict) else {"value": parsed}
    else:
        columns["body"] = text
        columns["abstract"] = text[:4000]
    return columns


def add(session: Session, paths: list[Path]) -> list[str]:
    """Adds files, replacing those of the same name; returns the names."""
    names = []
    for path in paths:
        statement = insert(Document).values(from_file(path))
        replaced = {
            column: statement.excluded[column]
            for column in ("abstract", "body", "data", "content")
        }
        statement = statement.on_conflict_do_update(index_elements=["name"], set_=replaced)
        names.append(session.scalars(statement.returning(Document.name)).one())
    return names


def list_all(session: Session) -> Iterator[tuple[str, str, int]]:
    """Name, kind and size in bytes of each document."""
    size = func.coalesce(
        func.octet_length(Document.body),
        func.octet_length(Document.content),
        func.length(func.jsonb_pretty(Document.data)),
    )
    for document, length in session.execute(select(Document, size).order_by(Document.name)):
        yield document.name, document.kind(), length


def show(session: Session, name: str) -> bytes:
    """The document as a file holds it (JSON with its keys in Postgres' order)."""
    found = select(Document).where(Document.name == name).options(undefer(Document.content))
    document = session.scalars(found).one()
    if document.content is not None:
        return document.content
    if document.data is not None:
        return json.dumps(document.data, ensure_ascii=False).encode()
    return (document.body or "").encode()


def search(session: Session, word: str) -> list[str]:
    """The names of the documents that mention a word, in the text or as a title."""
    pattern = f"%{word}%"
    found = select(Document.name).where(
        or_(Document.body.ilike(pattern), Document.data["title"].astext.ilike(pattern))
    )
    return list(session.scalars(found.order_by(Document.name)))


def tag(session: Session, name: str, word: str) -> None:
    """Writes a tag into a JSON document."""
    document = session.scalars(select(Document).where(Document.name == name)).one()
    if document.data is None:
        raise ValueError(f"{name} is not a JSON document")
    tags = set(document.data.get("tags", []))
    document.data["tags"] = sorted(tags | {word})
