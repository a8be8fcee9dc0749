"""How a dump was understood: for each tensor its array, layout and encoding, and why; else a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.diagnosis.dumps.encodings import Fit, decode, fit_of, is_other_type, kind_of_floats
from tflq.diagnosis.dumps.layouts import Arranged, arrangements
from tflq.diagnosis.dumps.names import Fits, Placed, nearest, place
from tflq.diagnosis.dumps.wanted import Archive, DumpOptions, Stored, Wanted
from tflq.errors import InputError
from tflq.graph import Array, Tensor


@dataclass(frozen=True, eq=False)
class Reading:
    """One tensor of a dump.

    Attributes:
        wanted: the tensor.
        source: name of the array.
        stored: Stored type and shape, as text.
        layout: Stored layout, as text.
        encoding: Meaning of the numbers, as text.
        why: Reason why the array is this tensor.
        array: [S, *shape] in the tensor's type, or floating-point values; [S, n] if it is cut short.
        tensor: Tensor with the encoding of the array.
        is_short: whether only the first elements are there.
    """

    wanted: Wanted
    source: str
    stored: str
    layout: str
    encoding: str
    why: str
    array: Array
    tensor: Tensor
    is_short: bool = False


@dataclass(frozen=True)
class Understood:
    """Interpretation of a dump.

    Attributes:
        path: Path of the file or folder.
        readings: Tensors in order of execution.
        samples: number of samples that all arrays have.
        notes: Arrays that were skipped or interpreted otherwise, as text.
        missing: tensors of the model that the dump does not contain.
    """

    path: str
    readings: tuple[Reading, ...]
    samples: int
    notes: tuple[str, ...]
    missing: tuple[str, ...]


def understand(
    archive: Archive, wanted: Sequence[Wanted], options: DumpOptions = DumpOptions(), samples: int | None = None
) -> Understood:
    """Identify the arrays of a dump.

    Args:
        archive: Result of `read_archive`.
        wanted: tensors of the model, in order of execution.
        options: Options of the caller that describe the dump.
        samples: Number of samples that the model gets; None if unknown.

    Raises:
        InputError: no array that can be read, or a question with its choices.
    """
    arrays = _in_order(archive, wanted, samples)

    def fits(s: Stored, w: Wanted) -> bool:
        return bool(arrangements(s, w.tensor))

    placed = _unnamed(archive, wanted, fits) if archive.is_unnamed and len(arrays) == 1 else []
    placed = placed or place(arrays, wanted, fits, options.numbers)
    if not placed:
        raise _refusal(archive, wanted, fits)
    taken = {id(p.stored) for p in placed}
    left = [a for a in arrays if id(a) not in taken]
    for a in left:
        _refuse_misfit(archive.path, a, wanted, placed)
    notes = [*archive.notes]
    if left:
        notes.append(f"passed over, no tensor of the model: {', '.join(a.name for a in left)}")
    arranged = _arranged(archive.path, placed, options.layout, samples)
    readings, refused = _decoded(archive.path, placed, arranged, options.values)
    notes += refused
    counts = [len(r.array) for r in readings]
    count = min(counts)
    if max(counts) > count:
        notes.append(f"arrays hold {count} to {max(counts)} samples: the first {count} of each are taken")
    seen = {r.wanted.name for r in readings}
    missing = tuple(w.name for w in wanted if w.name not in seen)
    return Understood(archive.path, tuple(readings), count, tuple(notes), missing)


def _in_order(archive: Archive, wanted: Sequence[Wanted], samples: int | None) -> Sequence[Stored]:
    """Cut raw bytes without names and map into the results of all operators, in order, if their total size is equal.

    With several samples, all tensors of a sample are stored before the next sample.
    """
    if not archive.is_unnamed or not archive.arrays[0].is_raw:
        return archive.arrays
    written = [w for w in wanted if w.operator is not None]
    sizes = [w.tensor.size * w.tensor.dtype.storage.itemsize for w in written]
    content = archive.arrays[0].array
    count, rest = divmod(content.size, max(sum(sizes), 1))
    if rest or not count or len(sizes) < 2 or (samples is not None and count != samples):
        return archive.arrays
    rows = np.split(content.reshape(count, -1), np.cumsum(sizes)[:-1], 1)
    return [
        Stored(w.name, np.ascontiguousarray(r).view(w.tensor.dtype.storage), is_flat=True)
        for w, r in zip(written, rows, strict=True)
    ]


def _unnamed(archive: Archive, wanted: Sequence[Wanted], fits: Fits) -> list[Placed]:
    """Place a single array without a name: by its file's name, as the output, or by its shape."""
    stored = archive.arrays[0]
    named = place([stored], wanted, fits, None)
    if named:
        return named
    candidates = [w for w in wanted if fits(stored, w)]
    outputs = [w for w in candidates if w.is_output]
    if len(outputs) == 1:
        return [Placed(stored, outputs[0], "an array without a name: the model's output")]
    if len(candidates) == 1:
        return [Placed(stored, candidates[0], "an array without a name: the only tensor of its shape")]
    if candidates:
        choices = ", ".join(f"'{w.name}'" for w in candidates[:6])
        raise InputError(
            f"{archive.path}: its array may be {choices}{' or another' if len(candidates) > 6 else ''}; specify it: "
            f"TENSOR={archive.path}"
        )
    return []


def _refusal(archive: Archive, wanted: Sequence[Wanted], fits: Fits) -> InputError:
    for stored in archive.arrays:
        _refuse_misfit(archive.path, stored, wanted, [])
    each = []
    for stored in archive.arrays[:5]:
        names = ", ".join(f"'{n}'" for n in nearest(stored, wanted, fits))
        each.append(f"'{stored.name}' {list(stored.array.shape)} (nearest: {names})")
    more = f" and {len(archive.arrays) - 5} more" if len(archive.arrays) > 5 else ""
    return InputError(f"{archive.path}: no tensor is called {'; '.join(each)}{more}")


def _refuse_index_column(path: str, stored: Stored, wanted: Sequence[Wanted]) -> None:
    """Refuse a table with one column more than a tensor has elements, as data frames are written."""
    if not path.lower().endswith(".csv") or stored.array.ndim != 2:
        return
    columns = stored.array.shape[1]
    matches = [w for w in wanted if w.tensor.size == columns - 1]
    if matches:
        named = next((w for w in matches if stored.name in (w.name, w.tensor.name)), matches[0])
        raise InputError(
            f"{path}: {columns} values per row; tensor '{named.name}' has {columns - 1} elements. Remove the header or "
            "index column"
        )


def _refuse_misfit(path: str, stored: Stored, wanted: Sequence[Wanted], placed: Sequence[Placed]) -> None:
    """Refuse an array that has the name of a tensor and not its size."""
    _refuse_index_column(path, stored, wanted)
    for w in wanted:
        if stored.name in w.names and not any(p.wanted is w for p in placed):
            shape = list(w.tensor.shape)
            raise InputError(
                f"{path}: '{stored.name}' has shape {list(stored.array.shape)}; the tensor has {shape}, or "
                f"[samples, {', '.join(map(str, shape))}], the same without axes of size 1, flat, or channels first"
            )


def _arranged(path: str, placed: Sequence[Placed], layout: str | None, samples: int | None) -> list[Arranged]:
    """Choose the layout of each array; an order that one shape determines applies to all arrays."""
    ways = [arrangements(p.stored, p.wanted.tensor) for p in placed]
    certain = {w[0].channels_first for w in ways if len(w) == 1 and w[0].is_certain and w[0].channels_first is not None}
    first = layout == "nchw" if layout else certain == {True}
    result = []
    for p, choices in zip(placed, ways, strict=True):
        is_first = True if p.stored.channels_first else first
        chosen = next((a for a in choices if a.channels_first in (None, is_first)), choices[0])
        if len(choices) > 1:
            why = "known of the format" if p.stored.channels_first else "as said" if layout else "as in other tensors"
            told = layout is not None or p.stored.channels_first or len(certain) == 1
            chosen = replace(chosen, words=f"{chosen.words}, {why if told else '--layout nchw for channels first'}")
        _refuse_other_type(path, p, chosen, samples)
        result.append(chosen)
    return result


def _refuse_other_type(path: str, placed: Placed, chosen: Arranged, samples: int | None) -> None:
    """Request the type of raw bytes with 2, 4 or 8 times as many samples as the model gets."""
    if placed.stored.is_raw and samples and chosen.samples in (2 * samples, 4 * samples, 8 * samples):
        width = chosen.samples // samples
        own = placed.wanted.tensor.dtype.value
        raise InputError(
            f"{path}: '{placed.stored.name}' contains {chosen.samples} samples of {own}, or {samples} of a type of "
            f"{width} bytes; specify --dtype {own}, --dtype int{8 * width}, or --dtype float{max(8 * width, 16)}"
        )


def _decoded(
    path: str, placed: Sequence[Placed], arranged: Sequence[Arranged], values: str | None
) -> tuple[list[Reading], list[str]]:
    fits: list[Fit | None] = [
        fit_of(a.array, p.wanted.tensor, p.stored.step) for p, a in zip(placed, arranged, strict=True)
    ]
    kind = values or kind_of_floats(path, fits)
    is_other = is_other_type([(a.array, p.wanted.tensor) for p, a in zip(placed, arranged, strict=True)])
    readings, refused = [], []
    for p, a, f in zip(placed, arranged, fits, strict=True):
        try:
            decoded = decode(a.array, p.wanted.tensor, f, kind, values is not None, is_other)
        except InputError as error:
            refused.append(f"passed over: '{p.stored.name}' {error}")
            continue
        stored = f"{p.stored.array.dtype}{list(p.stored.array.shape)}"
        words = (p.stored.name, stored, a.words, decoded.words, p.why)
        readings.append(Reading(p.wanted, *words, decoded.array, decoded.tensor, a.is_short))
    if not readings:
        raise InputError(f"{path}: {'; '.join(refused)}")
    return readings, refused
