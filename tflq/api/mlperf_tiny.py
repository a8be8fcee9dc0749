"""MLPerf Tiny's reference models and data sets, downloaded from their publishers."""

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
        models: Published files with task, size and checksum.
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
    """Models in a folder.

    Attributes:
        folder: Folder of the models.
        outcomes: Each model with the way it was obtained.
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

    An existing file is kept if its checksum matches, and refused if it does not. If the environment variable TFLQ_DATA
    names a folder with valid copies (in it, or in its "models"), these are used, and the network is not.

    Args:
        *names: Names of the models (default: all).
        folder: Output folder; created if missing.
        base_url: Base URL of a mirror with the same folders (default: the original place).
        progress: Progress callback; counts received bytes.

    Raises:
        OptionError: A name is unknown.
        FormatError: A checksum does not match.
        InputError, OutputError: The server cannot be reached, or the folder cannot be written.
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
        sets: Published files of each set, and the originals of its other files.
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
        outcomes: Path, the way it was obtained, and checksum (for the samples of kws01 one checksum of all).
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
    """A data set built from its originals.

    Attributes:
        task: Name of the task.
        folder: Folder of the data set.
        files: Names of the written files.
        size_bytes: Size of all files in bytes.
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
    """Return MLPerf Tiny's data sets: the published files of each, and the originals of its other files."""
    return DataSetsResult(tuple(SETS.values()))


def fetch_data(
    *tasks: str,
    folder: str | os.PathLike[str] = FOLDER,
    base_url: str | None = None,
    clips_url: str | None = None,
    progress: Progress = silent,
) -> FetchedData:
    """Put the published files of data sets into one folder per task; checksums are pinned.

    These are the labels of all tasks except sww01, the samples of kws01, and the stream of sww01 with its truth. An
    existing file is kept if its checksum matches, and refused if it does not. If the environment variable TFLQ_DATA
    names a folder with valid copies (in its "datasets"), these are used, and the network is not.

    Args:
        *tasks: kws01, vww01, ic01, ad01 or sww01 (default: all).
        folder: Folder with one folder per task; created if missing.
        base_url: Base URL of a mirror of mlcommons/tiny's folder "benchmark".
        clips_url: Base URL of a mirror of EEMBC's folder "datasets", for the samples of kws01.
        progress: Progress callback; counts received files.

    Raises:
        OptionError: A task is unknown.
        FormatError: A checksum does not match.
        InputError, OutputError: The server cannot be reached, or the folder cannot be written.
    """
    chosen = [find_set(task) for task in dict.fromkeys(tasks)] or list(SETS.values())
    outcomes: list[tuple[Path, Outcome, str]] = []
    count = sum(len(published.files) + (1000 if published.clips_sha256 else 0) for published in chosen)
    with progress("fetch", count) as advance:
        for published in chosen:
            place = Path(folder, published.task)
            for file in published.files:
                outcomes.append((place / file.name, fetch_file(file, place, base_url), file.checksum))
                advance(1)
            if published.clips_sha256:
                outcomes.append((place, fetch_clips(published, place, clips_url, advance), published.clips_sha256))
    return FetchedData(tuple(outcomes))


def build_data(
    task: str, *sources: str | os.PathLike[str], folder: str | os.PathLike[str] = FOLDER, base_url: str | None = None
) -> BuiltData:
    """Build a task's samples from the original archives, as MLCommons' scripts do (docs/guides/mlperf_tiny.md).

    The labels in the task's folder select the samples; if they are missing, the published labels are fetched.

    Args:
        task: kws01, vww01, ic01, ad01 or sww01.
        *sources: Original archives (.zip, .tar, .tar.gz) or their folders; `data_sets` lists them.
        folder: Folder with one folder per task; created if missing.
        base_url: Base URL of a mirror of mlcommons/tiny's folder "benchmark".

    Raises:
        OptionError: The task is unknown.
        InputError: Sources are missing or are not the originals; labels that cannot be obtained.
        MissingExtraError: scipy or Pillow is not installed.
        OutputError: The folder cannot be written.
    """
    published = find_set(task)
    place = Path(folder, task)
    made = build(published, [Path(source) for source in sources], place, base_url)
    return BuiltData(task, place, tuple(made), sum(map(len, made.values())))
