"""Processes and dask workers give what this process gives; what goes wrong is one line."""

from __future__ import annotations

import builtins
import os
import signal
import socket
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.digits_problem import evaluator, problem
from tflq.errors import MissingExtraError, OptionError, TflqError
from tflq.parallel import workers
from tflq.parallel.workers import Work, in_order, open_workers
from tflq.precision.evaluate import evaluate
from tflq.precision.problem import Problem
from tflq.precision.search import PrecisionSearch, search
from tflq.precision.trial import Requirement, Result, Trial

RULES = ("0:weight_bits=8", "1:weight_bits=8", "4:weight_bits=8", "8:weight_bits=8")


def tiny() -> Problem:
    return problem(20, rules=RULES, widths=(3, 5))


def searched(of: Problem, jobs: int = 1, scheduler: str | None = None) -> PrecisionSearch:
    with open_workers(partial(evaluate, of), jobs, scheduler) as run:

        def results(trials: Iterable[Trial]) -> Iterator[Result]:
            return (found for _, found in run(trials))

        return search(evaluator(of, results), Requirement(score=90.0))


def test_processes_find_the_same() -> None:
    of = tiny()
    assert searched(of, jobs=2) == searched(of)


@pytest.fixture
def cluster() -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, **options) as found:
        yield found.scheduler_address


def test_a_cluster_of_two_workers_finds_the_same(cluster: str) -> None:
    of = tiny()
    assert searched(of, scheduler=cluster) == searched(of)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1:9", "scheduler tcp://127.0.0.1:9: does not answer: .*refused"),
        ("tcp://127.0.0.1:99999", "does not answer: Port out of range"),
        ("nonsense://x:1", "allowed is an address such as tcp://host:8786"),
        ("localhost:8786", "allowed is an address such as"),
        ("", "allowed is an address such as"),
    ],
)
def test_a_scheduler_that_is_not_there(address: str, words: str) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    with pytest.raises(OptionError, match=words), open_workers(len, 1, address):
        pass


def test_a_listener_that_is_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    monkeypatch.setattr(workers, "_CONNECT_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(OptionError, match="does not answer: timed out"), open_workers(len, 1, address):
            pass


def test_without_distributed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: object, **others: object) -> object:
        if name == "distributed":
            raise ImportError(name)
        return original(name, *arguments, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'tflq\[cluster\]'"), open_workers(len, 1, "tcp://x:1"):
        pass


def test_a_worker_of_another_version_takes_no_part() -> None:
    with pytest.raises(OptionError, match=r"this worker has tflq .*, not 0\.0\.0; install the same on both"):
        Work(len, version="0.0.0")("task")


def counted(folder: str, deaths: int, number: int) -> int:
    """Square a number; the first workers that get number 3 die of it."""
    for death in range(deaths):
        if number == 3:
            try:
                Path(folder, f"death{death}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
    Path(folder, f"answered{number}.{os.getpid()}").touch()
    return number * number


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    with open_workers(partial(counted, str(tmp_path), 1), jobs=2) as run:
        assert list(in_order(run, range(20))) == [n * n for n in range(20)]
    assert (tmp_path / "death0").exists()


def test_work_that_kills_every_worker_is_one_line(tmp_path: Path) -> None:
    with open_workers(partial(counted, str(tmp_path), 99), jobs=2) as run:
        with pytest.raises(TflqError, match="workers ended before their tasks did, 4 times in a row"):
            next(run([3]))
        assert next(run([4])) == (0, 16)


def test_a_setting_that_the_target_refuses_is_a_result() -> None:
    of = tiny()
    broken = replace(of, rules=(*of.rules, "9:weight_bits=8", "no_such_layer:weight_bits=8"))
    found = evaluate(broken, Trial((5, 5)))
    assert "no_such_layer" in found.refused
    assert found.right is None
    assert not Requirement(score=0.0).holds(found)
