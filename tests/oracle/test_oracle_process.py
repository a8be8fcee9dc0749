"""The worker may abort, hang or be killed: the caller sees an error, the next call works, nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support import small_models
from tests.support.data import data_path
from tflq.errors import MissingExtraError, OracleError
from tflq.oracle import Oracle, OracleAborted, OracleRefused, OracleTimeout

ONE = np.ones((1, 1, 3), np.int8)


@pytest.fixture
def judge():
    try:
        oracle = Oracle(timeout_s=2.0)
    except MissingExtraError as error:
        pytest.skip(str(error))
    with oracle:
        yield oracle


def works(oracle):
    return oracle.run(small_models.add(), [ONE, ONE]).outputs[0].tolist() == [[[2, 2, 2]]]


def is_running(pid):
    """A process that ended but was not collected yet (a zombie) does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid):
    """Whether a process ends by itself; a loaded machine may take its time."""
    limit = time.monotonic() + 120
    while is_running(pid) and time.monotonic() < limit:
        time.sleep(0.05)
    return not is_running(pid)


def test_model_that_aborts_tflite(judge):
    with pytest.raises(OracleAborted, match="SIGABRT"):
        judge.run(small_models.add(output_scale=1e-9), [ONE, ONE])
    assert works(judge)


def test_worker_killed_from_outside(judge):
    assert works(judge)
    os.kill(judge.worker_pid, signal.SIGABRT)
    with pytest.raises(OracleAborted, match="SIGABRT"):
        works(judge)
    assert works(judge)


def test_worker_that_hangs(judge):
    assert works(judge)
    pid = judge.worker_pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(OracleTimeout, match=r"no answer in 2 s"):
        works(judge)
    assert not is_running(pid)
    assert works(judge)


def test_slow_runs_are_no_hang():
    model, clip = small_models.add(), [ONE, ONE]
    with Oracle(timeout_s=1.0) as impatient:
        impatient.describe(model)
        begin = time.monotonic()
        impatient.time(model, clip, 20_000)
        repeats = int(20_000 * 2.5 / (time.monotonic() - begin))
        begin = time.monotonic()
        assert impatient.time(model, clip, repeats).invocations == repeats
        assert time.monotonic() - begin > 1.0


@pytest.mark.parametrize("content", [b"", b"no flatbuffer at all", "cut"])
def test_bytes_that_are_no_model(judge, content):
    content = small_models.add()[:200] if content == "cut" else content
    with pytest.raises(OracleRefused) as caught:
        judge.run(content, [ONE, ONE])
    assert "\n" not in str(caught.value)
    assert str(judge.identity) in str(caught.value)
    assert works(judge)


def test_operator_without_a_kernel(judge):
    model = data_path("corpus", "single_op_float", "CEIL.tflite").read_bytes()
    with pytest.raises(OracleRefused, match="builtin opcode 'CEIL'"):
        judge.describe(model)


def test_failing_sample_is_named(judge):
    words = np.array([[b"a", b"b", b"c"]] * 3, object)
    with pytest.raises(OracleRefused, match=r"sample 1: .*gather"):
        judge.run(small_models.pick_string(), [words, np.array([[0], [9], [1]], np.int32)])
    assert works(judge)


def test_identity_and_runs_share_one_worker(judge):
    assert judge.worker_pid is None
    _ = judge.identity
    pid = judge.worker_pid
    assert works(judge)
    assert str(judge.identity)
    assert judge.worker_pid == pid


def test_same_model_is_loaded_once(judge, monkeypatch):
    from tflq.oracle import protocol

    sent = []
    monkeypatch.setattr(
        protocol, "send", lambda pipe, message, send=protocol.send: (sent.append(message), send(pipe, message))
    )
    for _ in range(3):
        assert works(judge)
    assert [type(message).__name__ for message in sent] == ["Load", "Prepare", "Run", "Run", "Run"]


def test_nothing_reaches_the_terminal(capfd):
    with Oracle(kernels="AUTO") as delegated:
        assert works(delegated)
        with pytest.raises(OracleError):
            delegated.run(b"no flatbuffer at all", [ONE])
    assert capfd.readouterr() == ("", "")


def test_last_words_of_a_broken_package(judge, monkeypatch):
    from tflq.oracle import package

    monkeypatch.setitem(package.DISTRIBUTIONS, "none", "none")
    monkeypatch.setattr(judge, "_package", "none")
    with pytest.raises(OracleError, match="cannot import none"):
        works(judge)


def test_close_ends_the_worker(judge):
    assert works(judge)
    pid = judge.worker_pid
    judge.close()
    judge.close()
    assert not is_running(pid)
    assert judge.worker_pid is None


def test_forgotten_oracle_ends_its_worker():
    oracle = Oracle()
    assert works(oracle)
    pid = oracle.worker_pid
    del oracle
    assert ends(pid)


PARENT = """
    import signal, sys, threading, numpy as np
    from tests.support import small_models
    from tflq.oracle import Oracle
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    oracle = Oracle()
    one = np.ones((1, 1, 3), np.int8)
    oracle.identity
    print(oracle.worker_pid, flush=True)
    if "busy" in sys.argv:
        oracle.time(small_models.add(), [one, one], 10**9)
    sys.stdin.read()
"""


@pytest.mark.parametrize("what", ["idle", "busy"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_worker_ends_with_its_parent(what, how):
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    pid = int(parent.stdout.readline())
    assert is_running(pid)
    time.sleep(0.5)
    parent.send_signal(how)
    parent.communicate(timeout=120)
    assert ends(pid)
