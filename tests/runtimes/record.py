"""Records the results of runtimes on the cases, as digests: `python -m tests.runtimes.record`.

tflite-micro must be importable; CMSIS-NN and the TOSA reference model run in the peer's scripts (TFLQ_DATA,
TFLQ_PEERS). A runtime that refuses a case has no digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.runtimes.cases import CASES, Case
from tflq.errors import OracleError
from tflq.graph import Array
from tflq.oracle import Oracle
from tflq.oracle.package import MICRO

FILE = Path(__file__).with_name("recorded.json")
PEER_RUNTIMES = ("cmsis-nn", "cmsis-nn-single", "tosa")


def digest(result: Array) -> str:
    """Return the digest of a result: of its type and bytes."""
    data = np.ascontiguousarray(result)
    return hashlib.sha256(f"{data.dtype.str} {data.size} ".encode() + data.tobytes()).hexdigest()[:32]


def record_micro() -> dict[str, str]:
    digests = {}
    with Oracle(MICRO) as oracle:
        for case in CASES:
            try:
                digests[case.name] = digest(oracle.run(case.content, case.inputs, tensors="outputs").outputs[0])
            except OracleError:
                continue
    return digests


def record_peer(case: Case) -> dict[str, str]:
    if len(case.inputs) != 1:
        return {}
    scripts = Path(os.environ["TFLQ_DATA"], "peers", "runtimes")
    target = Path(os.environ["TFLQ_PEERS"], "runtimes")
    with tempfile.TemporaryDirectory() as folder:
        model, x, y = (Path(folder, name) for name in ("m.tflite", "x.npy", "y.npz"))
        model.write_bytes(case.content)
        np.save(x, case.inputs[0])
        command = [target / "runtimes/bin/python", scripts / "run_all.py", model, "--inputs", x, "-o", y]
        command += ["--runtimes", ",".join(PEER_RUNTIMES)]
        environment = {**os.environ, "RUNTIMES": str(target), "PYTHONPATH": ""}
        subprocess.run(list(map(str, command)), check=False, capture_output=True, env=environment)
        with np.load(y) as stored:
            keys = {name: f"{name}/{case.graph.outputs[0]}" for name in PEER_RUNTIMES}
            return {name: digest(stored[key]) for name, key in keys.items() if key in stored.files}


def main() -> None:
    """Write the file."""
    recorded: dict[str, dict[str, str]] = {"tflm": record_micro()}
    for case in CASES:
        for name, value in record_peer(case).items():
            recorded.setdefault(name, {})[case.name] = value
    FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
