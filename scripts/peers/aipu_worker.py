"""Compass's Parser or Optimizer on a list of jobs, in the peer's own Python: one process, a child for each job.

    aipu_worker.py parse JOBS.json       {"model", "folder", "name", "force_float"}: NAME.txt and NAME.bin
    aipu_worker.py quantize JOBS.json    {"text", "folder", "settings", "calibration", "samples"}: a dump

A job with a result in its folder is omitted. A child's output is the file `log` in the folder.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Job = Mapping[str, Any]


def parse(job: Job) -> None:
    """Write the float IR of a .tflite."""
    tensorflow, tool = (importlib.import_module(name) for name in ("tensorflow", "AIPUBuilder.Parser.univ_main"))

    model, folder = Path(job["model"]), Path(job["folder"])
    interpreter = tensorflow.lite.Interpreter(str(model))
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    shapes = ",".join(str([int(n) for n in one["shape"]]).replace(" ", "") for one in inputs)
    lines = {
        "model_type": "tflite",
        "model_name": job["name"],
        "model_domain": "image_classification",
        "input_model": str(model),
        "input": ",".join(one["name"] for one in inputs),
        "input_shape": shapes,
        "output": ",".join(one["name"] for one in outputs),
        "output_dir": str(folder),
        **({"force_float_ir": "true"} if job["force_float"] else {}),
    }
    config = folder / "parse.cfg"
    config.write_text("[Common]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items()), encoding="utf-8")
    sys.argv = ["main.py", "-c", str(config)]
    tool.main()


def quantize(job: Job) -> None:
    """Quantize a float IR, and write the quantized IR and all its tensors."""
    compass: Any = importlib.import_module("compass")
    text = Path(job["text"])
    names = compass.inputs_of(text)
    compass.optimizer()
    graph = compass.optimizer.names["QuantizeGraph"].parse(str(text), str(text.with_suffix(".bin")))
    shapes = {tensor.name: tuple(tensor.ir_shape) for tensor in graph.input_tensors}
    arrays = []
    for key in ("calibration", "samples"):
        with np.load(job[key]) as file:
            given = {name.replace(" ", "_"): file[name] for name in file.files}
        single = list(given.values()) if len(given) == 1 else None
        arrays.append(
            [
                (single[0] if single else given[name]).reshape(-1, *shape[1:])
                for name, shape in zip(names, shapes.values(), strict=True)
            ]
        )
    compass.quantise_and_dump(text, job["folder"], job["settings"], *arrays)


def _run(work: Callable[[Job], None], job: Job) -> None:
    folder = Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        (folder / "done").touch()
        return
    try:
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        work(job)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def main(name: str, jobs: Path) -> None:
    """Run all jobs of a list that are not done."""
    if name == "parse":
        for module in ("onnx", "tensorflow", "torch"):
            importlib.import_module(module)
        sys.path.insert(0, os.environ["COMPASS_PARSER"])
        os.chdir(os.environ["COMPASS_PARSER"])
        importlib.import_module("AIPUBuilder.Parser.univ_parser")
    else:
        sys.path.insert(0, os.environ["COMPASS_SCRIPTS"])
        importlib.import_module("compass").optimizer()
    for job in json.loads(jobs.read_text(encoding="utf-8")):
        if not (Path(job["folder"]) / "done").exists():
            _run({"parse": parse, "quantize": quantize}[name], job)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
