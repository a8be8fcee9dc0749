"""Processes and dask workers give what this process gives; what goes wrong is one line."""

from __future__ import annotations

import builtins
import socket
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import pytest

from tests.support.digits_problem import evaluator, problem
from tflq.errors import MissingExtraError, OptionError, TflqError
from tflq.precision import workers
from tflq.precision.evaluate import evaluate
from tflq.precision.problem import Problem
from tflq.precision.search import PrecisionSearch, search
from tflq.precision.trial import Requirement, Trial
from tflq.precision.workers import open_workers

RULES = ("0:weight_bits=8", "1:weight_bits=8", "4:weight_bits=8", "8:weight_bits=8")


def tiny() -> Problem:
    return problem(20, rules=RULES, widths=(3, 5))


def searched(of: Problem, jobs: int = 1, scheduler: str | None = None) -> PrecisionSearch:
    with open_workers(of, jobs, scheduler) as run:
        return search(evaluator(of, run), Requirement(accuracy_percent=90.0))


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
    with pytest.raises(OptionError, match=words), open_workers(tiny(), 1, address):
        pass


def test_a_listener_that_is_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    monkeypatch.setattr(workers, "_CONNECT_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(OptionError, match="does not answer: timed out"), open_workers(tiny(), 1, address):
            pass


def test_without_distributed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: object, **others: object) -> object:
        if name == "distributed":
            raise ImportError(name)
        return original(name, *arguments, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'tflq\[cluster\]'"), open_workers(tiny(), 1, "tcp://x:1"):
        pass


def test_a_worker_of_another_version_takes_no_part() -> None:
    with pytest.raises(OptionError, match=r"this worker has tflq .*, the search runs tflq 0\.0\.0"):
        evaluate(replace(tiny(), version="0.0.0"), Trial((5, 5)))


def test_a_worker_that_dies_is_one_line() -> None:
    with pytest.raises(TflqError, match="a worker ended before its trial did"), workers._workers_may_die():
        raise BrokenProcessPool


def test_a_setting_that_the_target_refuses_is_a_result() -> None:
    of = tiny()
    broken = replace(of, rules=(*of.rules, "9:weight_bits=8", "no_such_layer:weight_bits=8"))
    found = evaluate(broken, Trial((5, 5)))
    assert "no_such_layer" in found.refused
    assert found.right is None
    assert not Requirement(accuracy_percent=0.0).holds(found)
