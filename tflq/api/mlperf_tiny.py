"""MLPerf Tiny's reference models and data sets, from where they are published."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflq.api.options import Progress, silent
from tflq.api.result import TableResult, picked
from tflq.benchmarks.datasets.build import build
from tflq.benchmarks.datasets.published import SETS, PublishedSet, fetch_clips, fetch_file, find_set
from tflq.benchmarks.fetch import Outcome, Published, fetch
from tflq.benchmarks.reference_models import BASE_URL, COMMIT, REFERENCE_MODELS, reference_models
from tflq.quoting import Json


@dataclass(frozen=True)
class ModelsResult(TableResult):
    """The reference models.

    Attributes:
        models: with task, size and checksum.
    """

    models: tuple[Published, ...]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each model."""
        return [{**picked(model, "name", "task", "size_bytes"), "sha256": model.checksum} for model in self.models]

    def report(self) -> Mapping[str, Json]:
        """Return the commit that they are of, and the rows."""
        return {"commit": COMMIT, "models": self.rows()}


@dataclass(frozen=True)
class FetchedModels(TableResult):
    """Models that are in a folder now.

    Attributes:
        folder: where.
        outcomes: each with how it came there.
    """

    folder: Path
    outcomes: tuple[tuple[Published, Outcome], ...]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return path, outcome, size and checksum of each."""
        return [
            {
                "path": str(self.folder / model.name),
                "outcome": outcome,
                "size_bytes": model.size_bytes,
                "sha256": model.checksum,
            }
            for model, outcome in self.outcomes
        ]

    def report(self) -> Mapping[str, Json]:
        """Return the rows."""
        return {"models": self.rows()}


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
class DataSetsResult(TableResult):
    """MLPerf Tiny's data sets.

    Attributes:
        sets: what is published of each, and what the rest is made of.
    """

    sets: tuple[PublishedSet, ...]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each task."""
        return [
            {
                "task": one.task,
                "published": [file.name for file in one.files] + (["samples"] if one.clips_sha256 else []),
                "made_of": one.originals,
                "from": one.home,
            }
            for one in self.sets
        ]

    def report(self) -> Mapping[str, Json]:
        """Return the rows."""
        return {"data_sets": self.rows()}


@dataclass(frozen=True)
class FetchedData(TableResult):
    """Published files that are in their folders now.

    Attributes:
        outcomes: path, how it came there, and its checksum (of kws01's samples that of all together).
    """

    outcomes: tuple[tuple[Path, Outcome, str], ...]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each file; the samples of kws01 are one."""
        return [{"path": str(path), "outcome": how, "checksum": checksum} for path, how, checksum in self.outcomes]

    def report(self) -> Mapping[str, Json]:
        """Return the rows."""
        return {"files": self.rows()}


@dataclass(frozen=True)
class BuiltData(TableResult):
    """A data set that was made.

    Attributes:
        task: its name.
        folder: where it lies.
        files: names of what was written.
        size_bytes: of all of them.
    """

    task: str
    folder: Path
    files: tuple[str, ...]
    size_bytes: int

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each file."""
        return [{"file": name} for name in self.files]

    def report(self) -> Mapping[str, Json]:
        """Return the folder and its files."""
        return {"task": self.task, "folder": str(self.folder), "size_bytes": self.size_bytes, "files": list(self.files)}


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
    """Make a task's samples of the original archives, as mlcommons' scripts do (docs/mlperf_tiny.md).

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
