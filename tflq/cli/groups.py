"""Groups of commands that answer an empty call with their help, as bad use."""

from __future__ import annotations

import click


class HelpfulGroup(click.Group):
    """A group that shows its help on standard error and ends with status 2 where no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Answer an empty command line."""
        if not args and not ctx.resilient_parsing:  # completion parses half a line
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)
