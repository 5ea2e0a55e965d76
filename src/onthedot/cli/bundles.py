"""An incident bundle as a file, or on standard output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from onthedot.cli.output import print_json, say

__all__ = ["Output", "write_bundle"]

Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write [default: print]")]


def write_bundle(bundle: dict[str, Any], output: Path | None, *, as_json: bool) -> None:
    import msgspec

    from onthedot.model.decoding import encode_json

    if output is None:
        print_json(bundle)
        return
    text = msgspec.json.format(encode_json(bundle), indent=2) + b"\n"
    try:
        output.write_bytes(text)
    except OSError as error:
        raise typer.BadParameter(f"could not write {output}: {error.strerror}", param_hint="--output") from None
    if as_json:
        print_json({"file": str(output), "bytes": len(text), "missing": bundle["missing"]})
        return
    say(f"Wrote {output} ({max(1, round(len(text) / 1024))} KB). Secrets are masked.")
    for part, why in bundle["missing"].items():
        say(f"Without {part}: {why}")
