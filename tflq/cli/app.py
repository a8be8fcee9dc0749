"""The command `tflq`: its subcommands by name, and the conversion of errors to one line and an exit status."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, cast

import click
from click.shell_completion import CompletionItem

from tflq import __version__
from tflq.cli import completion
from tflq.cli.help import HelpfulGroup, with_examples
from tflq.cli.in_force import DEBUG_OPTION
from tflq.cli.status import INTERRUPTED, PIPE_CLOSED
from tflq.errors import TflqError, TflqWarning, UsageError, command_line
from tflq.plugins import find_entry_points
from tflq.quoting import escape_unprintable

_BAD_INPUT = 2

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = {
    "inspect": "Show the content of a model: operators, tensors, quantization, sizes, MACs.",
    "run": "Run a model in TFLite's integers, in floating point or in a target's integers.",
    "verify": "Compare every tensor with TFLite, bit for bit.",
    "compare": "Compare models, targets or tensor dumps and rank the layers by the noise that they add.",
    "dumps": "Show the interpretation of a tensor dump: tensors, layouts, encodings, evidence.",
    "explain": "Show every step of one output element, from the inputs to the stored value.",
    "diff": "List the differences between two models: operators, tensors, quantization, constants.",
    "sensitivity": "Measure the effect of each layer in isolation on accuracy and outputs, at each of its widths.",
    "search": "Find the smallest mixed precision that keeps an accuracy.",
    "tune": "Find the last layer from which on more bits are needed: an alias of `search --backward`.",
    "recover": "Recover accurate weights with few bits for a target, without training.",
    "estimate": "Estimate cycles, time, energy and memory on a target, each figure with its error.",
    "convert": "Quantize a model for a target and write its files.",
    "cut": "Write a part of a model as a separate .tflite.",
    "dequantize": "Write the float network of a quantized model.",
    "export": "Write each layer's inputs, constants, integers and expected outputs for test benches.",
    "bench": "Measure accuracy and performance on a data set: of a model, for each target, or of a board.",
    "dut": "Run a model as a virtual device under test of MLPerf Tiny, on a pseudo-terminal.",
    "targets": "List the targets and their settings.",
    "runtimes": "List the runtimes of a .tflite file and the rules of each.",
    "models": "Get the MLPerf Tiny reference models.",
    "data": "Get MLPerf Tiny's data sets: published files, and samples built from the original archives.",
    "demo": "Show tflq at work on the small model inside the package.",
}


ENTRY_POINT_GROUP = "tflq.commands"


def _foreign_commands() -> dict[str, EntryPoint]:
    """Return the commands of other packages; tflq's own names have precedence."""
    return {e.name: e for e in find_entry_points(ENTRY_POINT_GROUP) if e.name not in COMMANDS}


class LazyGroup(HelpfulGroup):
    """A group of commands; each is a module of tflq.cli with its name, imported when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table, then the names of other packages' commands."""
        return [*COMMANDS, *_foreign_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command with that name."""
        if cmd_name not in COMMANDS:
            foreign = _foreign_commands().get(cmd_name)
            return None if foreign is None else cast(click.Command, foreign.load())
        command: click.Command = import_module(f"tflq.cli.{cmd_name}").command
        return with_examples(command, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown name; the message lists similar or all names."""
        known = not args or args[0].startswith("-") or args[0] in COMMANDS or args[0] in _foreign_commands()
        if not known and not ctx.resilient_parsing:
            names = self.list_commands(ctx)
            near = get_close_matches(args[0], names, 3, 0.6)
            meant = f"did you mean {' or '.join(near)}?" if near else f"available: {', '.join(names)}"
            raise click.UsageError(f"no command is called '{args[0]}'; {meant}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete to commands, from the table, without importing them, and to the group's own options."""
        named = {**COMMANDS, **{name: f"of {e.value}" for name, e in _foreign_commands().items()}}
        items = [CompletionItem(name, help=text) for name, text in named.items() if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [*COMMANDS.items(), *((name, f"of {e.value}") for name, e in _foreign_commands().items())]
            )

    def invoke(self, ctx: click.Context) -> int:
        """Run the command; a closed pipe (`| head`) ends it without a message."""
        try:
            status = super().invoke(ctx)
            sys.stdout.flush()
        except UsageError as error:
            named = click.Context(self, ctx, ctx.invoked_subcommand)
            raise click.UsageError(str(error), named) from error
        except KeyboardInterrupt:  # click would print an empty line first
            return _fail("interrupted", INTERRUPTED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return PIPE_CLOSED
        return status if isinstance(status, int) else 0


@click.group(
    cls=LazyGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, "-V", "--version", prog_name="tflq", message="%(prog)s %(version)s")
@DEBUG_OPTION
@click.option(
    "--show-completion",
    metavar="SHELL",
    is_eager=True,
    expose_value=False,
    callback=completion.show,
    help="Print a script for completion in bash, zsh or fish: commands, targets, tasks, settings and layers.",
)
def cli() -> None:
    """Read .tflite files, run them bit for bit as TFLite does, and requantize them for NPUs.

    Exit status: 0 success, 1 a check failed, 2 invalid usage or input.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; errors are one line on standard error."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    token = command_line.set(shlex.join(["tflq", *words]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", TflqWarning)
            warnings.showwarning = _show_warning(warnings.showwarning)
            status: int = cli.main(args=words, prog_name="tflq", standalone_mode=False)
        return status
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", INTERRUPTED)
    except Exception as error:
        if "--debug" in words:
            for line in traceback.format_exc().splitlines():
                print(escape_unprintable(line), file=sys.stderr)
        return _fail(_one_line(error), _BAD_INPUT)
    finally:
        command_line.reset(token)


def _show_warning(others: Callable[..., None]) -> Callable[..., None]:
    """Return a function that prints warnings of tflq as one line and passes all other warnings to `others`."""

    def show(message: Warning | str, category: type[Warning], *place: object) -> None:
        if not issubclass(category, TflqWarning):
            return others(message, category, *place)
        sys.stdout.flush()
        print(f"tflq: {escape_unprintable(str(message))}", file=sys.stderr)
        return None

    return show


def _one_line(error: Exception) -> str:
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "tflq"
        message = f"{error.format_message().rstrip('.')}; see {path} --help"
    elif isinstance(error, click.ClickException):
        message = error.format_message()
    elif isinstance(error, TflqError):
        message = str(error)
    elif isinstance(error, MemoryError):
        message = f"out of memory: {error}; use fewer samples at a time"
    elif isinstance(error, OSError):
        message = f"{error.filename or 'file'}: {error.strerror or error}"
    else:
        message = f"internal error: {type(error).__name__}: {error}; please report it with the output of --debug"
    return " ".join(message.split())


def _fail(message: str, status: int) -> int:
    print(f"tflq: {escape_unprintable(message)}", file=sys.stderr)
    return status
