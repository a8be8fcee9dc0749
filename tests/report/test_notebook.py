"""A notebook shows results as pages, and the bar of `tflq.progress`: run by Jupyter's own kernel."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.faults import DIGITS

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: it runs notebooks")
nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed: it runs notebooks")
pytest.importorskip("ipykernel", reason="ipykernel is not installed: it runs notebooks")
pytest.importorskip("jinja2", reason="jinja2 is not installed: it comes with tflq[report]")

CELL = f"""
import tflq, tflq.cli.progress
tflq.cli.progress._SECONDS_UNTIL_BAR = -1
tflq.compare({f"{DIGITS}@gap9-ne16"!r}, samples=tflq.SampleOptions(count=4), progress=tflq.progress)
"""


def test_a_cell_shows_the_page_and_the_bar() -> None:
    kernel = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python"}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    client = nbclient.NotebookClient(book, timeout=120)
    client.create_kernel_manager()
    client.km.kernel_cmd = kernel["argv"]
    client.execute()
    (cell,) = book.cells
    (result,) = [output for output in cell.outputs if output.output_type == "execute_result"]
    assert "<h2>What was run</h2>" in result.data["text/html"]
    bars = [output.data["text/html"] for output in cell.outputs if output.output_type == "display_data"]
    assert len(bars) >= 1
    assert all(bar.startswith("<progress") for bar in bars), json.dumps(bars)
    assert [output for output in cell.outputs if output.output_type in ("error", "stream")] == []
