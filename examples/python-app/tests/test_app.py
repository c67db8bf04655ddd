"""The application itself, run as a user runs it, once for each side."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conftest import Servers
from values import BYTES, JSONS, prose

HERE = Path(__file__).parent.parent


def both(servers: Servers, *arguments: str) -> bytes:
    """Runs one command on each side, at the same time; checks that both print the same."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "shelf", *arguments],
            cwd=HERE,
            env={**os.environ, "DATABASE_URL": url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for url in (servers.plain, servers.twin)
    ]
    with ThreadPoolExecutor() as threads:
        outputs = list(threads.map(lambda process: process.communicate(), running))
    for process, (_, errors) in zip(running, outputs, strict=True):
        assert process.returncode == 0, errors.decode()
    (plain, _), (twin, _) = outputs
    assert plain == twin
    return plain


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

    both(servers, "init")
    both(servers, "add", *paths)
    both(servers, "list")
    for name, content in files.items():
        shown = both(servers, "show", name)
        assert name == "document.json" or shown == content
    assert both(servers, "search", "lazy dog") == b"prose.txt\n"
    assert both(servers, "search", "it's a") != b""
    both(servers, "tag", "document.json", "seen")
    both(servers, "show", "document.json")
    (tmp_path / "prose.txt").write_bytes(b"now short")
    both(servers, "add", paths[0])
    assert both(servers, "show", "prose.txt") == b"now short"
    both(servers, "list")
