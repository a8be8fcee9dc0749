"""Quantises models with ai-edge-quantizer; runs in that package's own environment, one job a line of standard input.

A job is a JSON object: model, recipe (its name there, or null), rules (the recipe as it would be saved), samples (an
.npz of one array [S, *shape] a model input, by the tensor's name, or null), out, calibration (where the statistics go).
The answer is one line: {"error": null or its first line}.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def quantise(job: dict[str, Any]) -> None:
    """Write one model, and the statistics that it was made of."""
    recipes = import_module("ai_edge_quantizer.recipe")
    named = getattr(recipes, job["recipe"] or "", None)
    rules = named() if named else job["rules"]
    quantizer = import_module("ai_edge_quantizer.quantizer").Quantizer(job["model"], rules)
    found = None
    if job["samples"]:
        calibrator = import_module("ai_edge_quantizer.calibrator").Calibrator(job["model"], num_threads=1)
        details = calibrator._tfl_interpreter.get_signature_runner(None).get_input_details()
        with np.load(job["samples"]) as arrays:
            count = len(next(iter(arrays.values())))
            data = [{key: arrays[detail["name"]][i] for key, detail in details.items()} for i in range(count)]
        manager = import_module("ai_edge_quantizer.recipe_manager").RecipeManager()
        manager.load_quantization_recipe(rules)
        calibrator.calibrate({None: data}, manager)
        calibrator.save_calibration_result(job["calibration"])
        found = calibrator.get_model_qsvs()
    result = quantizer.quantize(found, enable_progress_bar=False, enable_progress_report=False)
    Path(job["out"]).write_bytes(result.quantized_model)


def main() -> None:
    """Answer jobs until the input ends."""
    for line in sys.stdin:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                quantise(json.loads(line))
            answer = None
        except Exception as error:  # whatever the package raises is its answer
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps({"error": answer}), flush=True)


if __name__ == "__main__":
    del sys.path[0]  # this folder has a module of the package's name
    main()
