"""Samples that processes share: the same bytes, whatever the workers are and whichever of them is killed."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import without_run
from tests.support.digits_problem import model, write_labeled
from tests.support.drop_in import recurrent
from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions
from tflq.api.target import choose_execution
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.diagnosis.compare import comparison
from tflq.errors import OptionError, UsageError
from tflq.graph import DType, Graph, GraphBuilder, Model
from tflq.parallel.executions import spread
from tflq.sampling import RandomSamples

COUNT = 600


def graph_model(graph: Graph) -> Model:
    return model_from_bytes(model_to_bytes(graph))


@contextmanager
def killing(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """Kill a worker as soon as the first samples are there."""
    killed: list[int] = []

    def advance(count: int) -> None:
        if not killed:
            worker = multiprocessing.active_children()[0]
            killed.append(worker.pid or 0)
            worker.kill()

    yield advance
    assert killed


@pytest.mark.parametrize("target", [None, "gap9-ne16"])
def test_run_gives_the_same_bytes(tmp_path: Path, target: str | None) -> None:
    options = {"target": target, "all_tensors": True}
    samples = RandomSamples(model().main, COUNT)
    alone = tflq.run(model(), samples, output=tmp_path / "1.npz", **options)
    shared = tflq.run(model(), samples, output=tmp_path / "2.npz", jobs=2, progress=killing, **options)
    assert shared.samples == alone.samples
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_verify_finds_the_same(oracle: object) -> None:
    samples = RandomSamples(model().main, 200)
    one, two = (tflq.verify(model(), samples, jobs=jobs) for jobs in (1, 2))
    assert one.to_dict() == two.to_dict()
    assert two.verification.samples == 200


def test_a_difference_keeps_its_sample(oracle: object) -> None:
    """XNNPACK's or optimized kernels differ somewhere: first differences and counts are the same."""
    b = GraphBuilder()
    x = b.input("x", (64,), DType.FLOAT32)
    graph = b.build([b.add("logistic", [b.add("exp", [x], (64,), DType.FLOAT32)], (64,), DType.FLOAT32)])
    samples = np.random.default_rng(5).normal(0, 3, (130, 64)).astype(np.float32)
    one, two = (tflq.verify(graph_model(graph), samples, jobs=jobs, kernels="AUTO") for jobs in (1, 2))
    assert not one.verification.is_equal
    assert one.to_dict() == two.to_dict()


def test_bench_measures_the_same(tmp_path: Path) -> None:
    folder = write_labeled(tmp_path, 40)
    one, two = (tflq.bench(model(), folder, targets=("gap9-ne16",), jobs=jobs).to_dict() for jobs in (1, 2))
    assert without_run(one) == without_run(two)
    with pytest.raises(UsageError, match="jobs and scheduler distribute the samples of mode accuracy"):
        tflq.bench(model(), folder, jobs=2, mode="performance", seconds=0.01)


@pytest.mark.parametrize("isolated", [False, True])
def test_compare_finds_the_same(isolated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "CHUNK_BYTES", 1 << 16)
    samples = SampleOptions(count=24, seed=3)
    one, two = (tflq.compare(model(), "@gap9-sq8", samples, isolated=isolated, jobs=jobs).to_dict() for jobs in (1, 2))
    assert without_run(one) == without_run(two)
    assert not one["equal"]


@pytest.fixture
def cluster() -> Iterator[object]:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, **options) as found:
        yield found


def test_a_cluster_gives_the_same_when_a_worker_is_killed(cluster: object) -> None:
    samples = RandomSamples(model().main, COUNT)
    alone = tflq.run(model(), samples)

    def kill(count: int) -> None:
        if len(killed) == 0:
            killed.append(next(iter(cluster.workers.values())).process.process._process)
            killed[0].kill()

    @contextmanager
    def killing_one(what: str, total: int) -> Iterator[Callable[[int], object]]:
        yield kill

    killed: list[multiprocessing.Process] = []
    shared = tflq.run(model(), samples, scheduler=cluster.scheduler_address, progress=killing_one)
    assert killed
    for name, array in alone.tensors.items():
        assert np.array_equal(array, shared.tensors[name])


def test_samples_that_follow_each_other_stay_in_this_process() -> None:
    found = tflq.run(graph_model(recurrent()), np.ones((5, 1, 1, 1), np.float32), state="stream", jobs=2)
    assert found.tensors["y"].ravel().tolist() == [1, 2, 3, 4, 5]


def test_less_than_one_job_is_refused() -> None:
    execution = choose_execution(model(), TargetOptions(), CalibrationOptions())
    with pytest.raises(OptionError, match="0 jobs; 1 or more are needed"), spread(execution, 0):
        pass
