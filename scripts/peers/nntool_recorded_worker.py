"""Runs NNTool on many networks in one process; in NNTool's own environment.

PYTHONPATH=<gap_sdk>/tools/nntool python nntool_recorded_worker.py PEER_SCRIPTS JOBS.json

JOBS.json: a list of {model, prefix, engine, weight_bits, feature_bits}. Writes PREFIX.json and PREFIX.npz as the peer's
quantise_and_dump.py does, and PREFIX.c, AutoTiler's model.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path


def _model(script: object, job: dict[str, object]) -> str:
    """AutoTiler's model; NNTool wants the whole SDK's project and stops where it is missing, behind the model."""
    wanted = argparse.Namespace(model=Path(str(job["model"])), scheme=job["engine"], weight_bits=job["weight_bits"],
                                feature_bits=job["feature_bits"], node_option=[])  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        try:
            script.quantize(wanted)[0].gen_project(directory=folder)  # type: ignore[attr-defined]
            failed = ""
        except Exception as error:  # whatever NNTool raises is its answer
            failed = f"{type(error).__name__}: {error}"
        written = Path(folder, "Model.c")
        return written.read_text(encoding="utf-8") if written.exists() else f"// failed: {failed}\n"


if __name__ == "__main__":
    scripts, jobs = sys.argv[1:]
    sys.path[0] = scripts  # this folder has a module of the name nntool
    script = import_module("quantise_and_dump")
    for job in json.loads(Path(jobs).read_text(encoding="utf-8")):
        sizes = [
            "--weight-bits",
            job["weight_bits"],
            "--feature-bits",
            job["feature_bits"],
            "--samples",
            job["samples"],
        ]
        words = [job["model"], "-o", job["prefix"], "--scheme", job["engine"], *sizes]
        sys.argv[1:] = [str(word) for word in words]
        script.main()
        Path(f"{job['prefix']}.c").write_text(_model(script, job), encoding="utf-8")
