"""Where files are looked for, and how they are downloaded."""

from __future__ import annotations

import hashlib
import http.server
import importlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byzadmm import datasets
from byzadmm.datasets import _files
from byzadmm.datasets._files import Source
from support.data_files import files_in, published


def test_search_path_order(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert datasets.search_path() == [cache]
    monkeypatch.setenv("BYZADMM_DATA", "/somewhere")
    assert datasets.search_path("mine") == [Path("mine"), Path("/somewhere"), cache]
    monkeypatch.delenv("BYZADMM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert datasets.search_path()[-1] == Path("/xdg/byzadmm")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.search_path()[-1] == tmp_path / ".cache" / "byzadmm"


def test_available_lists_every_set() -> None:
    rows = datasets.available()
    assert [row.name for row in rows] == ["digits", "synthetic", "mnist", "covtype", "fashion_mnist", "cifar10"]
    assert [row.where for row in rows] == ["in the package", "generated", None, None, None, None]
    assert [row.bytes for row in rows] == [_files.DIGITS.bytes, 0, 11_594_722, 11_240_707, 30_878_645, 170_052_171]
    assert all(row.licence for row in rows)


def test_table_of_files_is_well_formed() -> None:
    for source in _files.SOURCES.values():
        for file in source.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert len(file.urls) >= 2
            assert len({url.split("/")[2] for url in file.urls}) == len(file.urls)


CONTENT = bytes(range(256)) * 400


class Mirror(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        body = CONTENT[::-1] if self.path == "/wrong" else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/truncated" else body)

    def log_message(self, *args: Any) -> None:
        """Stay quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    pytest.importorskip("pooch")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def closed_port() -> str:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{sock.getsockname()[1]}/refused"


def publish_at(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    monkeypatch.setitem(_files.SOURCES, "covtype", Source("none", (published(CONTENT, urls=urls),)))


@pytest.mark.parametrize("first", ["/good", "/missing", "/wrong", "/truncated", "refused"])
def test_download_falls_back_to_the_next_mirror(
    server: str, cache: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    publish_at(monkeypatch, closed_port() if first == "refused" else server + first, server + "/good")
    (path,) = datasets.fetch("covtype")
    assert path == cache / "covtype" / "blob.bin"
    assert path.read_bytes() == CONTENT
    assert files_in(cache) == ["blob.bin"]


def test_download_happens_once(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_at(monkeypatch, server + "/good")
    (path,) = datasets.fetch("covtype")
    publish_at(monkeypatch, closed_port())
    assert datasets.fetch("covtype") == [path]


@pytest.mark.parametrize("tail", ["/missing", "/wrong", "/truncated"])
def test_failed_download_writes_nothing_and_says_what_to_do(
    server: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str
) -> None:
    refused = closed_port()
    publish_at(monkeypatch, refused, server + tail)
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("covtype", data_dir=tmp_path / "mine")
    message = str(caught.value)
    for part in (
        "covtype: data files not found",
        refused,
        server + tail,
        f"blob.bin  {len(CONTENT)} bytes  sha256 {hashlib.sha256(CONTENT).hexdigest()}",
        str(tmp_path / "mine"),
        str(cache),
    ):
        assert part in message
    assert files_in(cache) == []


def test_download_shows_progress_on_a_terminal(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    publish_at(monkeypatch, server + "/good")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    datasets.fetch("covtype")
    assert "100%" in capsys.readouterr().err


def test_download_without_pooch(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(FileNotFoundError, match=r"pip install 'byzadmm\[data\]'"):
        datasets.load("mnist")
    assert not cache.exists()


def test_download_to_an_unwritable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pooch")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BYZADMM_CACHE", str(tmp_path / "file"))
    with pytest.raises(FileNotFoundError, match=r"the cache cannot be written .* BYZADMM_CACHE chooses another folder"):
        datasets.fetch("mnist")


def test_fetch_names() -> None:
    assert datasets.fetch("digits") == datasets.fetch("synthetic") == []
    with pytest.raises(ValueError, match="name: expected one of"):
        datasets.fetch("nothing")
