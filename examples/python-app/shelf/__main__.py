"""The command line: python -m shelf init | add FILE... | list | show NAME | search WORD | tag NAME WORD"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from sqlalchemy.orm import Session

from . import library


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m shelf",
        description="Keeps documents in the Postgres that DATABASE_URL names.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("init", help="create the table")
    commands.add_parser("add", help="add or replace files").add_argument(
        "paths", nargs="+", type=Path
    )
    commands.add_parser("list", help="list names, kinds and sizes")
    commands.add_parser("show", help="print a document").add_argument("name")
    commands.add_parser("search", help="find documents by a word").add_argument("word")
    tag = commands.add_parser("tag", help="tag a JSON document")
    tag.add_argument("name")
    tag.add_argument("word")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    url = os.environ.get("DATABASE_URL")
    if url is None:
        sys.exit("DATABASE_URL is not set: postgresql://user@host:port/database")
    engine = library.connect(url)
    if args.command == "init":
        library.create_tables(engine)
        return
    with Session(engine) as session, session.begin():
        match args.command:
            case "add":
                for name in library.add(session, args.paths):
                    print(name)
            case "list":
                for name, kind, size in library.list_all(session):
                    print(f"{name}\t{kind}\t{size}")
            case "show":
                sys.stdout.buffer.write(library.show(session, args.name))
            case "search":
                for name in library.search(session, args.word):
                    print(name)
            case "tag":
                library.tag(session, args.name, args.word)


if __name__ == "__main__":
    main()
