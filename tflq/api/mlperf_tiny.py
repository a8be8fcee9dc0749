"""MLPerf Tiny's reference models and data sets, from where they are published."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tflq.api.options import Progress, silent
from tflq.api.result import Result
from tflq.benchmarks.datasets.build import build
from tflq.benchmarks.datasets.published import SETS, PublishedSet, fetch_clips, fetch_file, find_set
from tflq.benchmarks.fetch import Outcome, Published, fetch
from tflq.benchmarks.reference_models import BASE_URL, COMMIT, REFERENCE_MODELS, reference_models
from tflq.report import Column, Table, Verdict, identifier, number
from tflq.units import size


@dataclass(frozen=True)
class ModelsResult(Result):
    """The reference models.

    Attributes:
        models: with task, size and checksum.
    """

    FACTS = (Column("commit", "commit", get=lambda _: COMMIT),)

    models: tuple[Published, ...]

    @property
    def verdict(self) -> Verdict:
        """Number of models."""
        return Verdict("", len(self.models), "models of mlcommons/tiny", COMMIT)

    def tables(self) -> Sequence[Table]:
        """Return a row for each model."""
        return [Table("models", _MODELS, self.models, "Models")]


@dataclass(frozen=True)
class FetchedModels(Result):
    """Models that are in a folder now.

    Attributes:
        folder: where.
        outcomes: each with how it came there.
    """

    folder: Path
    outcomes: tuple[tuple[Published, Outcome], ...]

    @property
    def verdict(self) -> Verdict:
        """Number of models with the pinned checksum."""
        return Verdict("OK", len(self.outcomes), f"models in {self.folder}", "the pinned checksums")

    def tables(self) -> Sequence[Table]:
        """Return path, outcome, size and checksum of each."""
        path = identifier("path", "file", lambda row: str(self.folder / row[0].name))
        return [Table("models", (path, *_FETCHED), self.outcomes, "Files")]


_MODELS = (
    identifier("name", "name"),
    Column("task", "task", text=lambda model: model.task.replace("_", " ")),
    number("size_bytes", "size", form=lambda model: size(model.size_bytes or 0)),
    Column("sha256", get="checksum"),
)
_FETCHED = (
    Column("outcome", "outcome", get=lambda row: row[1]),
    number("size_bytes", "size", lambda row: row[0].size_bytes, lambda row: size(row[0].size_bytes or 0)),
    Column("sha256", get=lambda row: row[0].checksum),
)
_SETS = (
    identifier("task", "task"),
    Column("published", "fetch", get=lambda s: [f.name for f in s.files] + ["samples"] * bool(s.clips_sha256)),
    Column("made_of", "build, of", get="originals"),
    Column("from", "which is", get="home"),
)
_FILES = (
    identifier("path", "file", lambda row: str(row[0])),
    Column("outcome", "outcome", get=lambda row: row[1]),
    Column("checksum", get=lambda row: row[2]),
)


def models() -> ModelsResult:
    """Return the MLPerf Tiny reference models (mlcommons/tiny at a pinned commit, checksums pinned)."""
    return ModelsResult(REFERENCE_MODELS)


def fetch_models(
    *names: str, folder: str | Path = "models", base_url: str | None = None, progress: Progress = silent
) -> FetchedModels:
    """Put reference models into a folder.

    A file that is there already is kept if its checksum is right, and refused if it is wrong. Where the environment
    variable TFLQ_DATA names a folder with right copies (in it, or in its "models"), they are used, not the network.

    Args:
        *names: which; all where none is named.
        folder: it is made where it is missing.
        base_url: another place with the same folders: a mirror.
        progress: shows how many bytes have come.

    Raises:
        OptionError: an unknown name.
        FormatError: a wrong checksum.
        InputError, OutputError: the server cannot be reached, or the folder not be written.
    """
    chosen = reference_models(names)
    with progress("fetch", sum(model.size_bytes or 0 for model in chosen)) as advance:
        outcomes = [(model, fetch(model, Path(folder), base_url or BASE_URL, advance)) for model in chosen]
    return FetchedModels(Path(folder), tuple(outcomes))


FOLDER = "datasets"


@dataclass(frozen=True)
class DataSetsResult(Result):
    """MLPerf Tiny's data sets.

    Attributes:
        sets: what is published of each, and what the rest is made of.
    """

    sets: tuple[PublishedSet, ...]

    @property
    def verdict(self) -> Verdict:
        """Number of data sets."""
        return Verdict("", len(self.sets), "data sets of MLPerf Tiny")

    def tables(self) -> Sequence[Table]:
        """Return a row for each task."""
        return [Table("data_sets", _SETS, self.sets, "Data sets")]


@dataclass(frozen=True)
class FetchedData(Result):
    """Published files that are in their folders now.

    Attributes:
        outcomes: path, how it came there, and its checksum (of kws01's samples that of all together).
    """

    outcomes: tuple[tuple[Path, Outcome, str], ...]

    @property
    def verdict(self) -> Verdict:
        """Number of files with the pinned checksum."""
        return Verdict("OK", len(self.outcomes), "files or folders fetched", "the pinned checksums")

    def tables(self) -> Sequence[Table]:
        """Return a row for each file; the samples of kws01 are one."""
        return [Table("files", _FILES, self.outcomes, "Files")]


@dataclass(frozen=True)
class BuiltData(Result):
    """A data set that was made.

    Attributes:
        task: its name.
        folder: where it lies.
        files: names of what was written.
        size_bytes: of all of them.
    """

    FACTS = (
        Column("task", "task"),
        Column("folder", "folder", get=lambda r: str(r.folder)),
        Column("size_bytes"),
        Column("files"),
    )

    task: str
    folder: Path
    files: tuple[str, ...]
    size_bytes: int

    @property
    def verdict(self) -> Verdict:
        """Number of files."""
        return Verdict("", len(self.files), f"files in {self.folder}, {size(self.size_bytes)}")


def data_sets() -> DataSetsResult:
    """Return MLPerf Tiny's data sets: what is published of each, and what the rest is made of."""
    return DataSetsResult(tuple(SETS.values()))


def fetch_data(
    *tasks: str,
    folder: str | os.PathLike[str] = FOLDER,
    base_url: str | None = None,
    clips_url: str | None = None,
    progress: Progress = silent,
) -> FetchedData:
    """Put what is published of tasks' data into a folder for each; checksums are pinned.

    Labels of all tasks but sww01, the samples of kws01, the stream of sww01 and its truth. A file that is there
    already is kept if its checksum is right, and refused if it is wrong. Where the environment variable TFLQ_DATA names
    a folder with right copies (in its "datasets"), they are used, not the network.

    Args:
        *tasks: kws01, vww01, ic01, ad01 or sww01; all where none is named.
        folder: it holds a folder for each task.
        base_url: a mirror of mlcommons/tiny's folder "benchmark".
        clips_url: a mirror of EEMBC's folder "datasets".
        progress: shows how many files have come.

    Raises:
        OptionError: an unknown task.
        FormatError: a wrong checksum.
        InputError, OutputError: the server cannot be reached, or the folder not be written.
    """
    chosen = [find_set(task) for task in dict.fromkeys(tasks)] or list(SETS.values())
    outcomes: list[tuple[Path, Outcome, str]] = []
    count = sum(len(found.files) + (1000 if found.clips_sha256 else 0) for found in chosen)
    with progress("fetch", count) as advance:
        for found in chosen:
            place = Path(folder, found.task)
            for file in found.files:
                outcomes.append((place / file.name, fetch_file(file, place, base_url), file.checksum))
                advance(1)
            if found.clips_sha256:
                outcomes.append((place, fetch_clips(found, place, clips_url, advance), found.clips_sha256))
    return FetchedData(tuple(outcomes))


def build_data(
    task: str, *sources: str | os.PathLike[str], folder: str | os.PathLike[str] = FOLDER, base_url: str | None = None
) -> BuiltData:
    """Make a task's samples of the original archives, as mlcommons' scripts do (docs/guides/mlperf_tiny.md).

    The labels that the task's folder holds say which samples; where there are none, the published ones are fetched.

    Args:
        task: kws01, vww01, ic01, ad01 or sww01.
        *sources: archives (.zip, .tar, .tar.gz) or folders: `data_sets` says which.
        folder: it holds a folder for each task.
        base_url: a mirror of mlcommons/tiny's folder "benchmark".

    Raises:
        OptionError: an unknown task.
        InputError: no sources, or others than the originals; labels that cannot be had.
        MissingExtraError: scipy or Pillow is not installed.
        OutputError: the folder cannot be written.
    """
    found = find_set(task)
    place = Path(folder, task)
    made = build(found, [Path(source) for source in sources], place, base_url)
    return BuiltData(task, place, tuple(made), sum(map(len, made.values())))
