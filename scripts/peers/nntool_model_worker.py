"""AutoTiler's model of a network as NNTool writes it; runs in NNTool's own environment.

PYTHONPATH=<gap_sdk>/tools/nntool python nntool_model_worker.py PEER_SCRIPTS MODEL OUTPUT.c ENGINE WEIGHT_BITS
    FEATURE_BITS

NNTool wants a project of the whole SDK and stops where the rest of it is missing; by then the model is there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    scripts, model, output, engine, weight_bits, feature_bits = sys.argv[1:]
    sys.path[0] = scripts  # this folder has a module of the name nntool
    script = import_module("quantise_and_dump")
    wanted = argparse.Namespace(
        model=Path(model),
        scheme=engine,
        weight_bits=int(weight_bits),
        feature_bits=int(feature_bits),
        node_option=[],
    )
    with tempfile.TemporaryDirectory() as folder:
        try:
            script.quantize(wanted)[0].gen_project(directory=folder)
            failed = ""
        except Exception as error:  # whatever NNTool raises is its answer
            failed = f"{type(error).__name__}: {error}"
        written = Path(folder, "Model.c")
        text = written.read_text(encoding="utf-8") if written.exists() else ""
    Path(output).write_text(text or f"// failed: {failed}\n", encoding="utf-8")
