"""One side of a comparison: folder, worker processes and cached results of a checkout."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from artifacts.comparison import DIED
from artifacts.conversions import Conversion
from artifacts.worker import Result

ROOT = Path(__file__).resolve().parents[2]
FORMAT = 3
"""Version of cached results; raise it if the worker's results change."""

Results = dict[Conversion, Result]


@dataclass(frozen=True)
class Checkout:
    """A version of tflq.

    Attributes:
        name: Name in messages.
        folder: Root folder; it contains `tflq/`.
        cache: Folder of the cached results of this version; None if results are not cached.
    """

    name: str
    folder: Path
    cache: Path | None = None

    def results(
        self, models: Sequence[Path], conversions: Sequence[Conversion], jobs: int, progress: Callable[[], object]
    ) -> Mapping[Path, Results]:
        """Return the results of each model's conversions. Results missing in the cache are computed and added to it.

        Args:
            models: Paths of .tflite files.
            conversions: Conversions of each of them.
            jobs: Number of worker processes.
            progress: Called after each model.
        """
        local = threading.local()
        workers: list[_Worker] = []

        def convert(model: Path) -> Results:
            if not hasattr(local, "worker"):
                local.worker = _Worker(self.folder)
                workers.append(local.worker)
            results = self._convert(local.worker, model, conversions)
            progress()
            return results

        try:
            with ThreadPoolExecutor(jobs) as pool:
                return dict(zip(models, pool.map(convert, models), strict=True))
        finally:
            for worker in workers:
                worker.close()

    def _convert(self, worker: _Worker, model: Path, conversions: Sequence[Conversion]) -> Results:
        file = None if self.cache is None else self.cache / f"{_digest(model)}.json"
        cached = {} if file is None or not file.exists() else cast(dict[str, Result], json.loads(file.read_text()))
        keys = {conversion: " ".join([conversion[0], *conversion[1]]) for conversion in conversions}
        missing = [conversion for conversion in conversions if keys[conversion] not in cached]
        if missing:
            answers = worker.convert(model, missing)
            cached.update((keys[conversion], answer) for conversion, answer in zip(missing, answers, strict=True))
            if file is not None and all(result.get("refused") != DIED for result in cached.values()):
                _write(file, json.dumps(cached))
        return {conversion: cached[keys[conversion]] for conversion in conversions}


@dataclass
class _Worker:
    """Process that converts models with a checkout's tflq; started for the first model and after a crash."""

    folder: Path
    process: subprocess.Popen[str] | None = field(default=None)

    def convert(self, model: Path, conversions: Sequence[Conversion]) -> list[Result]:
        answers = self._request(model, conversions)
        if answers is None and len(conversions) > 1:
            return [answer for conversion in conversions for answer in self.convert(model, [conversion])]
        return [Result(refused=DIED, seconds=0.0)] if answers is None else answers

    def _request(self, model: Path, conversions: Sequence[Conversion]) -> list[Result] | None:
        process = self.process = self.process or self._start()
        request = {"checkout": str(self.folder), "model": str(model), "conversions": conversions}
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return cast(list[Result], json.loads(line))
        self.close()
        return None

    def _start(self) -> subprocess.Popen[str]:
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        environment = {**os.environ, **threads, "PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "0"}
        command = [sys.executable, str(Path(__file__).with_name("worker.py"))]
        return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@contextmanager
def open_checkout(base: str, cache: Path | None) -> Iterator[Checkout]:
    """Yield the checkout of a folder, or of a git revision of this repository.

    A revision is exported to a temporary folder. A folder with uncommitted changes is not cached.

    Raises:
        ValueError: `base` is neither a folder with tflq nor a revision.
    """
    if Path(base).is_dir():
        folder = Path(base).resolve()
        if not (folder / "tflq" / "__init__.py").is_file():
            raise ValueError(f"{base}: has no tflq/__init__.py")
        changes = _git(folder, "status", "--porcelain", "--", "tflq")
        revision = _git(folder, "rev-parse", "HEAD:tflq") if changes == "" else None
        yield Checkout(base, folder, _open_cache(cache, revision))
        return
    revision = _git(ROOT, "rev-parse", "--verify", "--quiet", f"{base}:tflq")
    if revision is None:
        raise ValueError(f"{base}: is neither a folder nor a revision")
    with tempfile.TemporaryDirectory() as name:
        archive = subprocess.run(["git", "archive", base, "tflq"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", name], input=archive.stdout, check=True)
        yield Checkout(base, Path(name), _open_cache(cache, revision))


def _open_cache(cache: Path | None, tree: str | None) -> Path | None:
    if cache is None or tree is None:
        return None
    folder = cache / f"{tree}-{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command; None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _digest(model: Path) -> str:
    return hashlib.sha256(model.name.encode() + b"\0" + model.read_bytes()).hexdigest()[:32]


def _write(file: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as scratch:
        scratch.write(text)
    Path(scratch.name).replace(file)
