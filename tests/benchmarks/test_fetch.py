"""Reference models are fetched whole and right, or not at all; the server is our own."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.data import data_files
from tflq.benchmarks.fetch import Published, fetch
from tflq.benchmarks.reference_models import REFERENCE_MODELS, reference_models
from tflq.errors import FormatError, InputError, OptionError, OutputError

CONTENT = bytes(range(256)) * 600
PLACES = ("models/tiny.tflite", "tiny.tflite")
MODEL = Published(
    "task", "tiny.tflite", "task/trained_models", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), PLACES
)


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT, or something wrong, by the first folder of the path."""

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        if self.path != f"/{kind}/{MODEL.folder}/{MODEL.name}" or kind == "missing":
            self.send_error(404)
            return
        body = {"good": CONTENT, "wrong": CONTENT[:-1] + b"x", "long": CONTENT + b"x", "short": CONTENT[:1000]}
        data = body.get(kind, CONTENT)
        self.send_response(200)
        if kind != "unsized":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if kind in ("cut", "unsized") else data)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFLQ_DATA", raising=False)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "*")


def test_download_then_already_there(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "models"
    counts: list[int] = []
    assert fetch(MODEL, folder, f"{server}/good", counts.append) == "downloaded"
    assert (folder / MODEL.name).read_bytes() == CONTENT
    assert sum(counts) == len(CONTENT)
    assert fetch(MODEL, folder, f"{server}/missing") == "already there"


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (
            "wrong",
            FormatError,
            f"wrong content, SHA-256 [0-9a-f]{{64}}, expected {MODEL.checksum}; no file was written",
        ),
        ("long", FormatError, "wrong content"),
        ("short", FormatError, f"the transfer was interrupted after 1000 of {len(CONTENT)} bytes"),
        ("cut", FormatError, f"the transfer was interrupted after {len(CONTENT) // 2} of {len(CONTENT)} bytes"),
        ("unsized", FormatError, "the transfer was interrupted"),
        ("missing", InputError, "the server returns 404"),
    ],
)
def test_nothing_is_kept_of_a_bad_transfer(
    server: str, tmp_path: Path, kind: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fetch(MODEL, tmp_path, f"{server}/{kind}")
    assert list(tmp_path.iterdir()) == []


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError, match=r"cannot be downloaded: .*refused.*TFLQ_DATA"):
        fetch(MODEL, tmp_path, f"http://127.0.0.1:{port}")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_hangs_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        with pytest.raises(InputError, match="cannot be downloaded"):
            fetch(MODEL, tmp_path, f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs http or https"):
        fetch(MODEL, tmp_path, f"file://{tmp_path}")


def test_a_wrong_file_that_is_there_stays(server: str, tmp_path: Path) -> None:
    (tmp_path / MODEL.name).write_bytes(b"mine")
    with pytest.raises(FormatError, match=r"tiny\.tflite: already exists, but .*move it away"):
        fetch(MODEL, tmp_path, f"{server}/good")
    assert (tmp_path / MODEL.name).read_bytes() == b"mine"


@pytest.mark.parametrize("below", ["models", "."])
def test_copies_are_used_before_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    copies = tmp_path / "data" / below
    copies.mkdir(parents=True)
    (copies / MODEL.name).write_bytes(CONTENT)
    monkeypatch.setenv("TFLQ_DATA", str(tmp_path / "data"))
    assert fetch(MODEL, tmp_path / "out", "http://127.0.0.1:9") == "copied"
    assert (tmp_path / "out" / MODEL.name).read_bytes() == CONTENT


def test_a_wrong_copy_is_passed_over(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / MODEL.name).write_bytes(CONTENT[:-1] + b"x")
    monkeypatch.setenv("TFLQ_DATA", str(tmp_path))
    assert fetch(MODEL, tmp_path / "out", f"{server}/good") == "downloaded"


def test_a_folder_that_cannot_be_made(server: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="cannot be created"):
        fetch(MODEL, tmp_path / "file" / "models", f"{server}/good")


def test_names() -> None:
    assert [m.name for m in reference_models(("vww_96_int8", "kws_ref_model.tflite", "vww_96_int8"))] == [
        "vww_96_int8.tflite",
        "kws_ref_model.tflite",
    ]
    assert reference_models() == REFERENCE_MODELS
    with pytest.raises(OptionError, match="no reference model is called 'kws'; there are ad01_int8, "):
        reference_models(("kws",))


@pytest.mark.parametrize("path", data_files("models"), ids=lambda path: path.stem)
def test_the_pinned_checksums_are_those_of_the_files(path: Path) -> None:
    (model,) = reference_models((path.name,))
    assert (model.size_bytes, model.checksum) == (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
