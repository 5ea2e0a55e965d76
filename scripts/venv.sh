#!/bin/sh
# Find a Python that is new enough and let it make the environment: `scripts/venv.sh run` or `scripts/venv.sh dev`.
# The environment's own Python is asked first, so that a second start costs a few milliseconds.
set -eu
cd "$(dirname "$0")/.."

for candidate in ${PYTHON:-} "${VENV:-.venv}/bin/python" \
    python3.14 python3.13 python3.12 python3.11 python3 python; do
    # It has to run: a name on the PATH may be a version manager's stand-in for a version that is not there.
    if "$candidate" -IS -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        exec "$candidate" scripts/make_venv.py "$@"
    fi
done

found=$(python3 --version 2>/dev/null || echo "no python3")
echo "On the Dot needs Python 3.11 or newer; found: $found." >&2
echo "Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python) or specify one:" >&2
echo "    make run PYTHON=/path/to/python3" >&2
exit 1
