"""Files in and out: one line where they cannot be read, nothing half written where they cannot be written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tflq import files
from tflq.errors import InputError, OutputError
from tflq.files import output_folder, read_bytes, write_bytes

is_root = pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_reading_gives_the_bytes_mapped_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"0123456789")
    assert read_bytes(path) == read_bytes(str(path)) == b"0123456789"
    monkeypatch.setattr(files, "_MAP_ABOVE_BYTES", 5)
    mapped = read_bytes(path)
    assert isinstance(mapped, memoryview)
    assert mapped == b"0123456789"
    assert mapped.readonly


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "data: cannot be read: No such file or directory; name a file that exists"),
        (lambda path: path.mkdir(), "data: cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b""), r"data: the file is empty \(0 bytes\)"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, make, message: str) -> None:
    make(tmp_path / "data")
    with pytest.raises(InputError, match=message):
        read_bytes(tmp_path / "data")


def test_writing_replaces_a_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"old and longer")
    write_bytes(path, memoryview(b"new"))
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["data"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"old")

    def fail(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(OutputError, match="data: cannot be written: No space left on device"):
        write_bytes(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["data"]


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="data: cannot be written: No such file or directory"):
        write_bytes(tmp_path / "missing" / "data", b"new")
    assert names(tmp_path) == []


@is_root
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="cannot be written: Permission denied"):
            write_bytes(tmp_path / "data", b"new")
        with pytest.raises(OutputError, match="cannot be written: Permission denied"), output_folder(tmp_path / "out"):
            pass
    finally:
        tmp_path.chmod(0o700)


def test_an_output_folder_gets_its_files_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with output_folder(target) as folder:
        (folder / "a").write_text("1")
        (folder / "sub").mkdir()
        (folder / "sub" / "b").write_text("2")
        assert not target.exists()
    assert names(target) == ["a", "sub"]
    assert names(target.parent) == ["out"]
    assert (target / "sub" / "b").read_text() == "2"


def test_an_output_folder_keeps_other_files_and_replaces_its_own(tmp_path: Path) -> None:
    (tmp_path / "out" / "sub").mkdir(parents=True)
    for name in ("kept", "a", "sub/old"):
        (tmp_path / "out" / name).write_text("old")
    with output_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("new")
        (folder / "sub").mkdir()
        (folder / "sub" / "b").write_text("new")
    assert names(tmp_path / "out") == ["a", "kept", "sub"]
    assert (tmp_path / "out" / "a").read_text() == "new"
    assert (tmp_path / "out" / "kept").read_text() == "old"
    assert names(tmp_path / "out" / "sub") == ["b"]


def test_after_an_error_nothing_has_changed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("old")

    def write_and_fail() -> None:
        with output_folder(tmp_path / "out") as folder:
            (folder / "a").write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert (tmp_path / "out" / "a").read_text() == "old"
    with pytest.raises(ZeroDivisionError), output_folder(tmp_path / "new"):
        raise ZeroDivisionError
    assert names(tmp_path) == ["out"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with (
        pytest.raises(OutputError, match="out: is a file; the output must be a folder"),
        output_folder(tmp_path / "out"),
    ):
        pass
    with (
        pytest.raises(OutputError, match=r"cannot be written: (Not a directory|File exists)"),
        output_folder(tmp_path / "out" / "in"),
    ):
        pass
    assert (tmp_path / "out").read_text() == "a file"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_stands_in_the_way_is_refused_before_anything_moves(tmp_path: Path, is_folder: bool) -> None:
    (tmp_path / "out").mkdir()
    blocked = tmp_path / "out" / "b"
    if is_folder:
        blocked.mkdir()
    else:
        blocked.write_text("old")

    def write() -> None:
        with output_folder(tmp_path / "out") as folder:
            (folder / "a").write_text("new")
            (folder / "b").write_text("new") if is_folder else (folder / "b").mkdir()

    with pytest.raises(OutputError, match=r"b: is a (folder|file); the output is a (file|folder)"):
        write()
    assert names(tmp_path / "out") == ["b"]
