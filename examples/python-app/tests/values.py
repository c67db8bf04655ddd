"""The values that every column type is tried with."""

from __future__ import annotations

import json
import random

THRESHOLD = 2048
MIB = 1 << 20

_random = random.Random(20241201)

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def noise(size: int) -> str:
    """Text that does not compress."""
    return "".join(_random.choices(BASE64, k=size))


def prose(size: int) -> str:
    """Text that compresses."""
    text = "The quick brown fox jumps over the lazy dog, and it's \"quoted\".\n"
    return (text * (size // len(text) + 1))[:size]


def like_a_reference() -> str:
    """The prefix and length of a reference, which no store ever gave out."""
    return "toast:" + noise(56)


TEXTS: dict[str, str | None] = {
    "null": None,
    "empty": "",
    "one": "a",
    "reference_size": noise(62),
    "below_threshold": noise(THRESHOLD - 1),
    "threshold": noise(THRESHOLD),
    "above_threshold": noise(THRESHOLD + 1),
    "prose": prose(20_000),
    "large": noise(65_536),
    "mebibyte_minus": prose(MIB - 1),
    "mebibyte": noise(MIB),
    "unicode": "naïve café, €, 日本語, 😀, e\u0301, \u2028, \ufeff; " * 300,
    "unicode_at_threshold": "é" * (THRESHOLD // 2),
    "quotes": "it's \"quoted\" \\ back\\\\slash $$dollar$$ E'\\n' %s %% $1 ?" * 100,
    "control": "tab\there\nline\r\nbell\x07 escape\x1b del\x7f" * 200,
    "like_a_reference": like_a_reference(),
    "prefix": "toast:",
    "prefix_and_more": "toast:" + prose(5000),
    "quoted_reference": '"' + like_a_reference() + '"',
    "backslashes": "\\" * 3000,
    "blanks": " " * 3000,
}


def _document(size: int) -> dict[str, object]:
    items = [{"name": f"item {n}", "price": n * 1.25, "tags": ["a", "b"]} for n in range(size // 60)]
    return {"zebra": 1, "a": 2, "items": items, "title": "it's a \"document\""}


# JSON texts as a client might send them: not in the order or spacing of jsonb.
JSONS: dict[str, str | None] = {
    "null": None,
    "json_null": "null",
    "number": "2.561422288066971e+16",
    "decimal": "0." + "123456789" * 7,
    "empty_string": '""',
    "empty_object": "{}",
    "string": json.dumps(noise(5000)),
    "like_a_reference": json.dumps(like_a_reference()),
    "prefix": '"toast:"',
    "document": json.dumps(_document(10_000)),
    "spaced": json.dumps(_document(10_000), indent=4),
    "large": json.dumps(_document(600_000)),
    "duplicate_keys": '{"b":1,"a":2,"b":3,"text":' + json.dumps(prose(4000)) + "}",
    "escapes": '{"text":"\\u00e9\\ud83d\\ude00\\n\\t\\"\\\\\\/ ' + "x" * 3000 + '"}',
    "unicode": json.dumps({"text": "日本語 😀 é" * 500}, ensure_ascii=False),
    "array": json.dumps(list(range(2000))),
    "contains_reference": json.dumps({"a": [like_a_reference()], "b": prose(3000)}),
}

BYTES: dict[str, bytes | None] = {
    "null": None,
    "empty": b"",
    "zero": b"\0",
    "all_bytes": bytes(range(256)),
    "all_bytes_often": bytes(range(256)) * 40,
    "below_threshold": _random.randbytes(THRESHOLD - 1),
    "threshold": _random.randbytes(THRESHOLD),
    "above_threshold": _random.randbytes(THRESHOLD + 1),
    "large": _random.randbytes(65_536),
    "mebibyte": _random.randbytes(MIB),
    "zeros": bytes(100_000),
    "magic": b"\xf7TOAST\r\n",
    "like_a_reference": b"\xf7TOAST\r\n" + _random.randbytes(42),
    "magic_and_more": b"\xf7TOAST\r\n" + _random.randbytes(5000),
    "hex_text": b"\\x" + b"deadbeef" * 500,
    "escape_text": b"\\000\\134\\'" * 500,
}

# Column, its parameter in SQL, and its values. The cast tells Postgres what an untyped
# parameter is, where the statement alone does not.
COLUMNS: dict[str, dict[str, object]] = {
    "body": dict(TEXTS),
    "note": {name: value for name, value in TEXTS.items() if value is None or len(value) <= 3000},
    "data": dict(JSONS),
    "verbatim": dict(JSONS),
    "raw": dict(BYTES),
}
