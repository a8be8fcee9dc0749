"""The pictures of the site show what their commands print today."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.tracked import ROOT

IMAGES = ROOT / "docs" / "images"


def test_the_findings_are_printed() -> None:
    command = [sys.executable, ROOT / "scripts" / "docs_images", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stdout}{done.stderr}: scripts/docs_images"


def test_the_folder_has_each_picture_and_no_other() -> None:
    names = json.loads((IMAGES / "manifest.json").read_text(encoding="utf-8"))
    pictures = {path.name for path in IMAGES.iterdir()} - {"manifest.json"}
    assert pictures == {f"{n}{e}" for n in names for e in ([".svg"] if n == "explain" else ["-light.png", "-dark.png"])}
    assert all((IMAGES / name).stat().st_size <= 300_000 for name in pictures)
