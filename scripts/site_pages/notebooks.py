"""Notebooks: a page of the site per notebook, and a runner without Jupyter that collects printed text."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = "notebooks"
DOCS = Path(__file__).resolve().parents[2] / "docs"

Notebook = dict[str, Any]
"""The JSON of a notebook, format 4.5."""


def notebooks() -> dict[str, Notebook]:
    """Return each notebook by the name of its file without ending."""
    paths = sorted((DOCS / FOLDER).glob("*.ipynb"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def pages() -> Mapping[str, str]:
    """Return the Markdown page of each notebook: text, code and printed text."""
    return {f"{FOLDER}/{name}.md": _page(name, notebook) for name, notebook in notebooks().items()}


def printed_text(cell: Mapping[str, Any]) -> str:
    """Return the printed text that a cell stores."""
    return "".join("".join(output["text"]) for output in cell.get("outputs", ()) if output["output_type"] == "stream")


def run(notebook: Notebook) -> list[str]:
    """Run the code cells in order in the present folder and return the printed text of each."""
    names: dict[str, object] = {"__name__": "__main__"}
    texts = []
    for number, cell in enumerate(code_cells(notebook)):
        tree = ast.parse("".join(cell["source"]))
        with redirect_stdout(io.StringIO()) as output:
            exec(compile(tree, f"cell {number + 1}", "exec"), names)
        texts.append(output.getvalue())
    return texts


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """Return the code cells."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _page(name: str, notebook: Notebook) -> str:
    parts = [part for cell in notebook["cells"] for part in _parts(cell)]
    head, _, rest = parts[0].partition("\n")
    return "\n\n".join([head, f"Download: [{name}.ipynb]({name}.ipynb).", rest.strip(), *parts[1:]]) + "\n"


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    if printed_text(cell):
        yield f"```text\n{printed_text(cell)}```"
