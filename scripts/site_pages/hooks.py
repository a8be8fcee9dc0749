"""Hooks of MkDocs: add the generated pages to the site."""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from site_pages import generated_pages  # noqa: E402


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add each generated page; a stored page of the same path is an error."""
    for path, text in generated_pages().items():
        if files.get_file_from_path(path) is not None:
            raise ValueError(f"docs/{path} is generated; delete the file")
        files.append(File.generated(config, path, content=text))
    return files
