"""The application itself, run as a user runs it, once for each side."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import Servers

from values import BYTES, JSONS, prose

HERE = Path(__file__).parent.parent


def shelf(url: str, *arguments: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "shelf", *arguments],
        cwd=HERE,
        env={**os.environ, "DATABASE_URL": url},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_the_same_commands_give_the_same_output(servers: Servers, tmp_path: Path) -> None:
    files = {
        "prose.txt": prose(300_000).encode(),
        "short.txt": b"short",
        "unicode.txt": ("日本語 😀 é " * 3000).encode(),
        "document.json": str(JSONS["large"]).encode(),
        "picture.bin": bytes(BYTES["mebibyte"] or b""),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = [str(tmp_path / name) for name in files]

    def session(url: str) -> list[bytes]:
        output = [shelf(url, "init"), shelf(url, "add", *paths), shelf(url, "list")]
        output += [shelf(url, "show", name) for name in files]
        output.append(shelf(url, "search", "lazy dog"))
        output.append(shelf(url, "search", "it's a"))
        shelf(url, "tag", "document.json", "seen")
        output.append(shelf(url, "show", "document.json"))
        (tmp_path / "prose.txt").write_bytes(b"now short")
        output.append(shelf(url, "add", paths[0]))
        output.append(shelf(url, "show", "prose.txt"))
        output.append(shelf(url, "list"))
        (tmp_path / "prose.txt").write_bytes(files["prose.txt"])
        return output

    plain, twin = session(servers.plain), session(servers.twin)
    assert plain == twin
    assert plain[3] == files["prose.txt"]
    assert plain[7] == files["picture.bin"]
    assert plain[8] == b"prose.txt\n"
