"""One HTML file that needs nothing else, and the same figures as JSON beside it."""

from __future__ import annotations

from html import escape
from pathlib import Path

import msgspec

from proof.chaos.run import Result
from proof.checker.story import Story
from proof.report.text import rows_of
from proof.report.timeline import timeline

__all__ = ["page", "write_report"]

STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --paper: #fff; --faint: #8884; --soft: #6a6a70; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8ea; --paper: #161618; --soft: #a0a0a8; } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1180px; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { font-size: 1.1rem; font-weight: 600; } .good { color: #2a8a4a; } .bad { color: #c0392b; }
table { border-collapse: collapse; } td { padding: .2rem 1.2rem .2rem 0; vertical-align: top;
  border-bottom: 1px solid var(--faint); } td:first-child { color: var(--soft); white-space: nowrap; }
svg { width: 100%; height: auto; } svg text { font: 10px system-ui, sans-serif; fill: var(--soft); }
.title { font-weight: 600; fill: var(--ink); } .tick { text-anchor: middle; } .scale { text-anchor: end; }
.grid { stroke: var(--faint); stroke-width: .6; } .first { fill: #4a90d9; } .again { fill: #e67e22; }
.p50 { fill: #4a90d9; } .p99 { fill: #e6a23c; } .worst { fill: #c0392b; } .node { fill: #7fb3a0; }
.lost { stroke: #c0392b; stroke-width: 1.6; fill: none; } code { font-size: .92em; }
"""


def page(result: Result, story: Story) -> str:
    good = not result.violations
    verdict = "No promise was broken." if good else f"{len(result.violations)} violations."
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows_of(result))
    listed = "".join(
        f"<tr><td>{escape(violation.kind)}</td><td><code>{escape(violation.text[:1000])}</code></td></tr>"
        for violation in result.violations[:500]
    )
    wrong = "" if good else f"<h2>Violations</h2><table>{listed}</table>"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>On the Dot: chaos, seed {result.seed}</title><style>{STYLE}</style></head><body>
<h1>On the Dot under chaos</h1>
<p>Seed {result.seed}, profile {escape(result.profile)}, {result.seconds:.0f} s.
<span class="verdict {"good" if good else "bad"}">{verdict}</span></p>
{timeline(story, result.harms)}
<p>Calls: <span style="color:#4a90d9">■</span> the first of a run, <span style="color:#e67e22">■</span> a further one.
Lateness in each second: <span style="color:#4a90d9">●</span> median,
<span style="color:#e6a23c">●</span> 99th percentile, <span style="color:#c0392b">●</span> worst.
Nodes: from the first claim to the last, ✕ declared lost.</p>
<h2>Figures</h2><table>{rows}</table>
{wrong}
</body></html>
"""


def write_report(place: Path, result: Result, story: Story) -> Path:
    """`place` without an ending: .html and .json are written."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
    file = place.with_suffix(".html")
    file.write_text(page(result, story), encoding="utf-8")
    return file
