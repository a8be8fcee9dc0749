"""click options generated from option records: name, type, default and help are defined once, in the record."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click

from tflq.sampling.samples import Span

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # click's own type for decorated functions
Source = Callable[..., object]
"""A dataclass, or a function with options as parameters."""

_SECTION = re.compile(r"^(?:Attributes|Args):\n((?:[ ].*(?:\n|$)|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}\*{0,2}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def option(
    source: Source, field: str, *flags: str, prefix: str = "", minimum: float | None = None, **changes: object
) -> Decorator:
    """Return the click option for a field of a record, or for a parameter of a function.

    The type follows from the annotation, the help from the entry of the field in the docstring. A default is shown
    unless it is None, False or empty.

    Args:
        source: Record or function that declares the field.
        field: Name of the field; the parameter of the command has the same name.
        *flags: Names of the option (default: "--" and the name of the field).
        prefix: Name of the command's record (`record`), or empty for a single option.
        minimum: Smallest allowed number.
        **changes: Arguments of `click.option` that differ from the generated ones.
    """
    declared = inspect.signature(source).parameters[field]
    attributes = _value_attributes(str(declared.annotation), source, minimum)
    if declared.default not in (None, (), declared.empty) and declared.default is not False:
        attributes |= {"default": declared.default, "show_default": True}
    names = flags or (f"--{field.replace('_', '-')}",)
    declared_name = f"{prefix}__{field}" if prefix else field
    attributes |= changes
    attributes["help"] = attributes.get("help") or help_of(source, field, is_multiple="multiple" in attributes)
    return click.option(*names, declared_name, **attributes)


def help_of(source: Source, field: str, *, is_multiple: bool = False) -> str:
    """Return the help of a field: its entry in the docstring, without "True to" or "True for".

    Raises:
        KeyError: No docstring of the source has an entry for the field.
    """
    classes = source.__mro__ if isinstance(source, type) else (source,)
    for declaring in classes:
        text = _entries(declaring).get(field)
        if text is not None:
            text = re.sub("^True (?:to|for) ", "", text)
            return text[0].upper() + text[1:] + " Repeatable." * is_multiple
    raise KeyError(f"{source.__name__} has no entry for {field}")


def record(name: str, kind: Callable[..., object], *options: Decorator) -> Decorator:
    """Return a decorator that adds options and passes their values to the command as one record.

    Args:
        name: Name of the command's parameter.
        kind: Record to create; the option for its field F has the parameter NAME__F.
        options: Options of click, created with prefix `name`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*arguments: object, **values: object) -> object:
            own = {key: values.pop(key) for key in tuple(values) if key.startswith(f"{name}__")}
            fields = {key.removeprefix(f"{name}__"): value for key, value in own.items()}
            return function(*arguments, **{name: kind(**fields)}, **values)

        decorated: Callable[..., Any] = command
        for add_option in reversed(options):
            decorated = add_option(decorated)
        return decorated

    return decorate


def read_span(ctx: click.Context, param: click.Parameter, text: str | None) -> Span | None:
    """Parse START:STOP, or STOP for 0:STOP, as an option's callback."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    start, stop = (first, last) if colon else ("0", first)
    if not (start.isdecimal() and stop.isdecimal() and int(start) < int(stop)):
        raise click.BadParameter(f"'{text}' is not a range; write START:STOP, as 0:500, or STOP", ctx, param)
    return Span(int(start), int(stop))


def _value_attributes(annotation: str, source: Source, minimum: float | None) -> dict[str, Any]:
    """Return the arguments of `click.option` that follow from an annotation."""
    kind = annotation.removesuffix(" | None")
    several = re.fullmatch(r"(?:tuple|Sequence)\[(\w+)(?:, \.\.\.)?\]", kind)
    if several or kind == "Inputs":
        return {"multiple": True} | (_value_attributes(several[1], source, minimum) if several else {})
    if kind == "bool":
        return {"is_flag": True}
    if kind == "Span":
        return {"callback": read_span, "metavar": "START:STOP"}
    if kind == "int":
        return {"type": click.INT if minimum is None else click.IntRange(min=int(minimum))}
    if kind == "float":
        return {"type": click.FLOAT if minimum is None else click.FloatRange(min=minimum)}
    if kind == "Path":
        return {"type": click.Path(path_type=Path)}
    known = vars(sys.modules[source.__module__])
    if kind.startswith("Literal["):
        return {"type": click.Choice(ast.literal_eval(f"({kind.removeprefix('Literal[').removesuffix(']')},)"))}
    return {"type": click.Choice(get_args(known[kind]))} if get_origin(known.get(kind)) is Literal else {}


def _entries(source: object) -> Mapping[str, str]:
    """Return the entries of the section `Attributes` or `Args` of a docstring: name -> text in one line."""
    section = _SECTION.search(inspect.cleandoc(getattr(source, "__doc__", None) or ""))
    matches = _ENTRY.findall(section[1]) if section else ()
    return {name: " ".join(text.split()) for name, text in matches}
