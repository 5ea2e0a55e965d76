#!/bin/sh
# Write requirements/*.txt anew: every version and hash, for every Python that we support, and no address of an index.
# `make lock` keeps what is pinned; `make lock UPGRADE=--upgrade` takes the newest of everything.
set -eu
cd "$(dirname "$0")/.."

compile() {
    output=requirements/$1
    shift
    # shellcheck disable=SC2086  # UPGRADE is zero or more options
    "${UV:-uv}" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-emit-find-links --no-header ${UPGRADE:-} --output-file "$output" "$@"
}

compile run.txt pyproject.toml
compile build.txt --group build --constraints requirements/run.txt
compile uv.txt --group uv
compile dev.txt pyproject.toml --all-extras --group build --group dev --constraints requirements/run.txt --constraints requirements/build.txt
# What is installed beside an image's node with all extras: the versions that the tests ran with.
compile extras.txt pyproject.toml --all-extras --constraints requirements/dev.txt
compile bench.txt requirements/bench.in
