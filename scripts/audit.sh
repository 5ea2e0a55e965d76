#!/bin/sh
# Ask the Python advisory database about every version that an installation may contain: requirements/extras.txt pins all
# that requirements/run.txt does, and the extras. pip-audit is fetched for this run.
set -eu
cd "$(dirname "$0")/.."
PATH="${VENV:-.venv}/bin:$PATH"
if ! command -v uv >/dev/null 2>&1; then
    echo "make audit needs uv: pip install uv" >&2
    exit 1
fi
exec uv tool run --quiet pip-audit --strict --requirement requirements/extras.txt --require-hashes --disable-pip --progress-spinner off "$@"
