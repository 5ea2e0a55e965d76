"""The command line. `main` turns what goes wrong into a message that says what to do, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Exit codes: 0 ok, 1 failed, 2 usage."""
    from onthedot.cli.app import app
    from onthedot.cli.failures import explain
    from onthedot.errors import OnTheDotError, SettingsError
    from onthedot.telemetry.plain import plain

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        app(arguments, prog_name="onthedot")
    except OnTheDotError as error:
        sys.stderr.write(plain(explain(error)) + "\n")
        sys.exit(2 if isinstance(error, SettingsError) else 1)
    except BrokenPipeError:  # `onthedot jobs list | head`
        sys.stderr.close()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
