"""Runs TPU-MLIR in its own Python for scripts/peers/tpu_mlir.py: one JSON job a line in, one JSON answer a line out.

    worker SCRIPTS      (inside the environment that the peer's `setup` made)

A job: folder with net.onnx and x.npz; "method" makes calibration tables, "table" and "asymmetric" lower and simulate:
the folder then has sym.npz or asym.npz (all tensors) and sym.json or asym.json (all layers). Each job runs in a child
process, because the tool's C++ aborts on graphs that it does not like; an answer is {"error": "..."} or {}.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

LIMIT = 300
"""Seconds that one job may take."""


def main() -> None:
    sys.path[0] = sys.argv[1]  # not this folder, whose tpu_mlir.py is another module
    os.environ["TPU_MLIR_ENTERED"] = "1"
    for name in ("onnx", "pymlir", "tools.model_transform", "utils.mlir_shell"):
        with contextlib.suppress(ImportError):
            __import__(name)  # once, in the parent
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(in_child(json.loads(line))) + "\n")
        answers.flush()


def in_child(job: dict[str, Any]) -> dict[str, Any]:
    folder = Path(job["folder"])
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT)
        try:
            run(job, folder)
            found = {}
        except BaseException as error:  # the answer says it
            found = {"error": f"{type(error).__name__}: {error}"[:500]}
        answer.write_text(json.dumps(found))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if answer.exists():
        said: dict[str, Any] = json.loads(answer.read_text())
        return said
    return {"error": f"the tool died (status {status}): {last_words(folder / 'log.txt')}"}


def last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    words = [line for line in lines if any(w in line for w in ("rror", "ssert", "not support", "UNREACHABLE"))]
    return " | ".join(words[:2])[:300]


def run(job: dict[str, Any], folder: Path) -> None:
    import numpy as np

    tool = import_module("tool")

    log = folder / "log.txt"
    if not (folder / "top.mlir").exists():
        tool.transform(folder / "net.onnx", folder, log)
    names = [layer["name"] for layer in tool.read_graph(folder / "top.mlir") if layer["op"] == "top.Input"]
    with np.load(folder / "x.npz") as file:
        inputs = {name: file[name] for name in names}
    if "method" in job:
        calibrate(job, folder, inputs)
        return
    mode = "asym" if job["asymmetric"] else "sym"
    lowered = tool.lower(
        folder, log, table=job["table"], asymmetric=job["asymmetric"], qtable=job.get("qtable"), chip=job["chip"]
    )
    np.savez(folder / f"{mode}.npz", **tool.simulate(lowered, inputs))
    (folder / f"{mode}.json").write_text(json.dumps(tool.read_graph(lowered)))


def calibrate(job: dict[str, Any], folder: Path, inputs: dict[str, Any]) -> None:
    import numpy as np

    tool = import_module("tool")

    if job["method"] == "minmax":
        lines = []
        for name, value in tool.simulate(folder / "top.mlir", inputs).items():
            low, high = float(value.min()), float(value.max())
            lines.append(f"{name} {0.87 * max(abs(low), abs(high)) or 1e-5:.9g} {low:.9g} {high:.9g}")
        (folder / "table").write_text("\n".join([*lines, ""]))
        return
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "data").mkdir()
    count = len(next(iter(inputs.values())))
    for sample in range(count):
        np.savez(folder / "data" / f"{sample:06}.npz", **{name: value[sample] for name, value in inputs.items()})
    command = ["run_calibration.py", "top.mlir", "--dataset", "data", "--input_num", str(count)]
    tool.run([*command, "--cali_method", job["method"], "--tune_num", "0", "-o", "table"], folder, folder / "log.txt")


if __name__ == "__main__":
    main()
