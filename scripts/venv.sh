#!/bin/sh
# Find a Python that is new enough and let it make the environment: `scripts/venv.sh run` or `scripts/venv.sh dev`.
# The environment's own Python is asked first, so that a second start costs a few milliseconds. Then the distribution's:
# version managers mostly compile without profiling, and all tests took 29 minutes on such a Python, 17 on Debian's.
set -eu
cd "$(dirname "$0")/.."

make_with() {
    # It has to run: a name on the PATH may be a version manager's stand-in for a version that is not there.
    if "$1" -IS -c "import sys${3:-}; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1; then
        exec "$1" scripts/make_venv.py "$2"
    fi
}

for candidate in ${PYTHON:-} "${VENV:-.venv}/bin/python"; do make_with "$candidate" "$@"; done
make_with "${SYSTEM_PYTHON:-/usr/bin/python3}" "$1" ", ensurepip"  # Debian's has it only with python3-venv
for candidate in python3.14 python3.13 python3.12 python3.11 python3 python; do make_with "$candidate" "$@"; done

found=$(python3 --version 2>/dev/null || echo "no python3")
echo "On the Dot needs Python 3.11 or newer; found: $found." >&2
echo "Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python) or specify one:" >&2
echo "    make run PYTHON=/path/to/python3" >&2
exit 1
