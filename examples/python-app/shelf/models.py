"""The one table of the shelf."""

from __future__ import annotations

import datetime
from typing import Any

from sqlalchemy import DateTime, LargeBinary, String, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.mutable import MutableDict
from sqlalchemy.orm import DeclarativeBase, Mapped, deferred, mapped_column


class Base(DeclarativeBase):
    """The tables of the application."""


class Document(Base):
    """A text, a JSON document or a file, with what is known about it."""

    __tablename__ = "shelf"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    abstract: Mapped[str | None] = mapped_column(String(4000))
    body: Mapped[str | None] = mapped_column(Text)
    data: Mapped[dict[str, Any] | None] = mapped_column(MutableDict.as_mutable(JSONB))
    content: Mapped[bytes | None] = deferred(mapped_column(LargeBinary))
    added: Mapped[datetime.datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.now()
    )

    def kind(self) -> str:
        """What the document is, for people."""
        if self.data is not None:
            return "json"
        return "text" if self.body is not None else "binary"
