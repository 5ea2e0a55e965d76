"""The command line. `main` turns errors into messages with advice, and into exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command. Exit codes: 0 success, 1 failure, 2 usage or settings error."""
    from onthedot.cli.app import command_line
    from onthedot.cli.failures import explain
    from onthedot.errors import OnTheDotError, SettingsError
    from onthedot.telemetry.plain import plain

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command_line(arguments)(arguments, prog_name="onthedot")
    except OnTheDotError as error:
        sys.stderr.write(plain(explain(error)) + "\n")
        sys.exit(2 if isinstance(error, SettingsError) else 1)
    except BrokenPipeError:  # `onthedot jobs list | head`
        sys.stderr.close()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
