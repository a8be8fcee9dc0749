"""A dask scheduler behind TLS, with dask's own settings and certificates that the test makes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import tflq
from tests.support.digits_problem import model
from tflq.errors import OptionError
from tflq.sampling import RandomSamples

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_certificates(folder: Path) -> dict[str, object]:
    """Make an authority and one certificate, and return the settings of dask that name them (docs/guides/limits.md)."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    for command in (
        ("req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority"),
        ("req", *KEY, "-keyout", "one.key", "-out", "one.csr", "-subj", "/CN=one"),
        ("x509", "-req", "-in", "one.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "1", "-out", "one.pem"),
    ):
        subprocess.run(("openssl", *command), cwd=folder, check=True, capture_output=True)
    tls = "distributed.comm.tls"
    roles = {f"{tls}.{role}": role for role in ("client", "scheduler", "worker")}
    pairs = {
        f"{role}.{kind}": str(folder / f"one.{end}")
        for role in roles
        for kind, end in (("cert", "pem"), ("key", "key"))
    }
    return {**pairs, f"{tls}.ca-file": str(folder / "ca.pem"), "distributed.comm.require-encryption": True}


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    import dask

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        dask.config.set(make_certificates(tmp_path)),
        distributed.LocalCluster(protocol="tls://", security=distributed.Security(), **options) as found,
    ):
        yield found.scheduler_address


def test_a_scheduler_behind_tls_gives_the_same(scheduler: str) -> None:
    samples = RandomSamples(model().main, 100)
    found = tflq.run(model(), samples, scheduler=scheduler)
    assert scheduler.startswith("tls://")
    for name, array in tflq.run(model(), samples).tensors.items():
        assert array.tobytes() == found.tensors[name].tobytes()


def test_without_certificates_it_is_one_line(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import dask

    monkeypatch.setattr("tflq.parallel.workers._CONNECT_SECONDS", 1)
    nothing = {f"distributed.comm.tls.{key}": None for key in ("ca-file", "client.cert", "client.key")}
    with (
        dask.config.set({**nothing, "distributed.comm.require-encryption": False}),
        pytest.raises(OptionError, match=f"^scheduler {scheduler}: does not answer: TLS expects") as refused,
    ):
        tflq.run(model(), RandomSamples(model().main, 1), scheduler=scheduler)
    assert "\n" not in str(refused.value)
