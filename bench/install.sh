#!/bin/sh
# The peers, in .bench: Python ones from requirements/bench.txt into an environment of their own, Node ones if Node is here.
set -eu
cd "$(dirname "$0")/.."
home=.bench
uv=$(command -v uv || echo "${VENV:-.venv}/bin/uv")
if ! cmp -s requirements/bench.txt "$home/installed.txt"; then
    mkdir -p "$home"
    "$uv" venv --quiet --allow-existing --python "${VENV:-.venv}/bin/python" "$home/venv"
    "$uv" pip sync --quiet --python "$home/venv/bin/python" requirements/bench.txt
    cp requirements/bench.txt "$home/installed.txt"
fi
if command -v npm >/dev/null 2>&1; then
    mkdir -p "$home/node"
    if ! cmp -s bench/node/package.json "$home/node/package.json"; then
        cp bench/node/package.json "$home/node/"
        (cd "$home/node" && npm install --no-audit --no-fund --silent) || {
            rm "$home/node/package.json" # so that the next time tries again
            echo "npm failed: the peers on Node take no part, or an older version does" >&2
        }
    fi
    cp bench/node/*.mjs "$home/node/"
else
    echo "no Node.js here: graphile-worker, pg-boss and BullMQ take no part"
fi
