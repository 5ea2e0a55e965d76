#!/bin/sh
# Ask the Python advisory database about every version that an installation may contain: requirements/extras.txt pins all
# that requirements/run.txt does, and the extras. pip-audit is fetched for this run.
#
# Ends with 1 if there are known vulnerabilities, and with 3 if not everything could be looked up: that is no clean result.
set -eu
cd "$(dirname "$0")/.."
PATH="${VENV:-.venv}/bin:$PATH"
unfinished() {
    echo "make audit: NOT AUDITED. $1" >&2
    echo "It needs a package index that has pip-audit, and the advisories at https://pypi.org/pypi/NAME/VERSION/json" >&2
    echo "(a mirror of packages alone does not have them). Run it where both can be reached." >&2
    exit 3
}
if ! command -v uv >/dev/null 2>&1; then
    unfinished "uv is missing: pip install uv."
fi
uv tool run --quiet pip-audit --version >/dev/null || unfinished "pip-audit could not be fetched."
found="$(mktemp)"
trap 'rm -f "$found"' EXIT
if uv tool run --quiet pip-audit --strict --requirement requirements/extras.txt --require-hashes --disable-pip \
    --progress-spinner off "$@" >"$found"; then
    cat "$found"
    exit 0
fi
cat "$found"
if [ -s "$found" ]; then
    echo "make audit: known vulnerabilities, see above." >&2
    exit 1
fi
unfinished "Not every package could be looked up: the message above names the first one."
