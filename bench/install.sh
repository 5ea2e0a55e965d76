#!/bin/sh
# The peers, in .bench: Python ones from requirements/bench.txt into an environment of their own, Node ones if Node is here.
set -eu
cd "$(dirname "$0")/.."
home=.bench
uv=$(command -v uv || echo "${VENV:-.venv}/bin/uv")
mkdir -p "$home"
export UV_PYTHON_DOWNLOADS=never
# Trust what the machine trusts, as scripts/make_venv.py does: a company's proxy is known to the machine, not to uv.
if "${VENV:-.venv}/bin/python" -c 'import ssl; assert ssl.create_default_context().cert_store_stats()["x509_ca"]' 2>/dev/null; then
    export UV_SYSTEM_CERTS=true UV_NATIVE_TLS=true
fi
# On the very Python that ours runs on: builds of one version differ by up to 1.7 × in speed.
python=$("${VENV:-.venv}/bin/python" -c 'import sys; print(sys.base_prefix, *sys.version_info[:3])')
{ echo "# $python"; cat requirements/bench.txt; } >"$home/wanted.txt"
if ! cmp -s "$home/wanted.txt" "$home/installed.txt"; then
    rm -rf "$home/venv"
    "$uv" venv --quiet --python "${VENV:-.venv}/bin/python" "$home/venv"
    "$uv" pip sync --quiet --python "$home/venv/bin/python" requirements/bench.txt
    cp "$home/wanted.txt" "$home/installed.txt"
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
