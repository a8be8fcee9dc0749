"""The command lines in README and docs, with what stands under them, and a folder in which they run.

A block without a language whose lines begin with "$ " is a session: what follows a command is what it prints. An
indented line that begins with "tflq " is a command without output. "..." stands for anything in a line, or for lines.
A block `python title="NAME"` is a file of that name, written where it stands.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_FENCE = re.compile(r"^```(.*)\n((?:(?!```).*\n)*?)```$", re.MULTILINE)
_FILE = re.compile(r'python title="([\w.]+)"')
_INDENTED = re.compile(r"^(?: {4}.*\n)+", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """One command line.

    Attributes:
        place: page and line.
        command: as a shell takes it.
        printed: the lines that stand under it; empty where nothing is said.
    """

    place: str
    command: str
    printed: tuple[str, ...]


def documented_pages(root: Path) -> list[Path]:
    """Return README, SKILL.md and the stored pages of the site, by path."""
    return [root / "README.md", root / "SKILL.md", *sorted((root / "docs").rglob("*.md"))]


def is_standalone(page: Path) -> bool:
    """Return whether a page runs in an empty folder, without data: the Quickstart, the tutorials, SKILL.md."""
    return page.name in ("quickstart.md", "SKILL.md") or page.parent.name == "tutorials"


def failures(examples: Sequence[Example], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run examples in order and return each one that fails or prints other lines than the page."""
    wrong = []
    for example in examples:
        done = run(example.command, folder, environment)
        allowed = (0, 1) if example.command.startswith("tflq ") else (0,)
        if done.returncode not in allowed or (example.printed and not holds(done.stdout, example.printed)):
            wrong.append(f"{example.place}: {example.command}: {done.returncode} {done.stderr}\n{done.stdout[:2000]}")
    return wrong


def examples_of(page: Path) -> list[Example]:
    """Return the commands of a page, from top to bottom."""
    text = page.read_text("utf-8")
    examples: list[tuple[int, Example]] = []
    for match in _FENCE.finditer(text):
        line = text[: match.start()].count("\n") + 1
        name = _FILE.fullmatch(match[1])
        if name:
            examples.append((line, Example(f"{page.name}:{line}", f"cat > {name[1]} <<'FILE'\n{match[2]}FILE", ())))
        elif not match[1]:
            commands = _commands(match[2].splitlines(), line + 1, False)
            examples += [(n, Example(f"{page.name}:{n}", *e)) for n, e in commands]
    for match in _INDENTED.finditer(text):
        lines = [line.removeprefix("    ") for line in match[0].splitlines()]
        commands = _commands(lines, text[: match.start()].count("\n") + 1, True)
        examples += [(n, Example(f"{page.name}:{n}", *e)) for n, e in commands]
    return [example for _, example in sorted(examples, key=lambda item: item[0])]


def _commands(lines: list[str], first: int, is_bare: bool) -> list[tuple[int, tuple[str, tuple[str, ...]]]]:
    found: list[tuple[int, list[str], list[str]]] = []
    for n, line in enumerate(lines, first):
        is_command = line.startswith("$ ") or (is_bare and re.match(r"tflq [a-z]", line))
        if is_command:
            found.append((n, [line.removeprefix("$ ")], []))
        elif found and found[-1][1][-1].endswith("\\") and not found[-1][2]:
            found[-1][1].append(line.strip())
        elif found and line.strip("`"):
            found[-1][2].append(line)
    return [(n, (" ".join(p.rstrip("\\ ") for p in parts), tuple(printed))) for n, parts, printed in found]


def holds(printed: str, expected: tuple[str, ...]) -> bool:
    """Return whether a text has the expected lines, in order and without others but where "..." stands.

    Empty lines do not count, and any run of spaces is as good as another: columns are as wide as what stands in them.
    """
    text = "".join(f"{' '.join(line.split())}\n" for line in printed.splitlines() if line.strip())
    parts = ["(?:.*\n)*?" if line.strip() == "..." else f"{_pattern(line)}\n" for line in expected if line.strip()]
    return re.fullmatch("".join(parts), text) is not None


def _pattern(line: str) -> str:
    return ".*".join(re.escape(" ".join(part.split())) for part in line.split("..."))


def is_synopsis(command: str) -> bool:
    """Return whether a line shows a form and is not meant to run: it has MODEL, DIR or brackets."""
    return re.search(r"\b(?:MODEL|DIR|DUMP|HOST|SOUNDS)\b|\[", command.partition("<<")[0]) is not None


def make_folder(folder: Path, data: Path, clips: int = 1000) -> None:
    """Put what the examples name into a folder: the keyword models and their clips, and a dump of a board.

    Args:
        folder: empty.
        data: what TFLQ_DATA names.
        clips: how many of them.
    """
    source, target = data / "datasets" / "kws01", folder / "kws01"
    for name in ("kws_ref_model.tflite", "kws_ref_model_float32.tflite", "str_ww_ref_model.tflite"):
        shutil.copy(data / "models" / name, folder)
    shutil.copy(folder / "kws_ref_model.tflite", folder / "model.tflite")
    target.mkdir()
    lines = (source / "y_labels.csv").read_text().splitlines()[:clips]
    (target / "y_labels.csv").write_text("".join(f"{line}\n" for line in lines))
    for line in lines:
        shutil.copy(source / line.split(",")[0], target)
    some = [np.fromfile(target / line.split(",")[0], np.int8).reshape(1, 49, 10, 1) for line in lines[:2]]
    np.save(folder / "clips.npy", np.stack(some))


def plant_dump(folder: Path, environment: Mapping[str, str]) -> None:
    """Write board.npz, the dump of a board whose layer CONV_2D_0_4 has channel 20 by 12 too low."""
    run("tflq run kws_ref_model.tflite -t gap9-ne16 -i clips.npy --all-tensors -o board.npz", folder, environment)
    arrays = dict(np.load(folder / "board.npz"))
    name = next(name for name in arrays if name.endswith("CONV_2D_0_4"))
    arrays[name][..., 20] = np.maximum(arrays[name][..., 20].astype(np.int16) - 12, 0)
    np.savez(folder / "board.npz", **arrays)


def run(command: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command line in a shell, without a terminal."""
    done = ["bash", "-c", command]
    return subprocess.run(done, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
