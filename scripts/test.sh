#!/bin/sh
# Everything that `make test` runs: the checks and the tests made from the OpenAPI document beside all other tests, told
# after them; then, with the machine for itself, what measures time. All parts are run whatever the others say; one that
# fails fails the whole.
set -u
cd "$(dirname "$0")/.."

# Each of many processes would compile everything anew.
unset PYTHONDONTWRITEBYTECODE

"$VENV/bin/python" -m tests.services.debian

folder=$(mktemp -d)
tally=$folder/tally
: >"$tally"
"${MAKE:-make}" --no-print-directory check >"$folder/check" 2>&1 &
check=$!
# In a process of its own: each worker would make all those tests, which takes ten seconds and half a gigabyte.
openapi=tests/api/test_schemathesis.py
"$VENV/bin/pytest" -p no:cacheprovider --tally="$folder/openapi-tally" "$openapi" >"$folder/openapi" 2>&1 &
generated=$!
tests=
trap 'rm -rf "$folder"' EXIT
# A shell that waits for a command in the foreground hears no signal before that has ended; so nothing is there.
trap 'trap "" INT TERM; kill $check $generated $tests 2>/dev/null; wait; exit 130' INT TERM

failed=0
wait_for_checks() {
	[ -z "$check" ] || wait "$check" || failed=1
	[ -z "$generated" ] || wait "$generated" || failed=1
	check= generated=
}
pytest_waited() {
	"$VENV/bin/pytest" "$@" &
	tests=$!
	wait "$tests"
	code=$?
	tests=
	return "$code"
}
parts=0
run() {
	parts=$((parts + 1))
	rm -f .pytest_cache/v/cache/lastfailed
	pytest_waited --tally="$tally" "$@" || again "$?" || failed=1
}
# A test of real processes with deadlines may fail because the machine did something else. So a few failures are looked at
# once more, one after the other and with nothing beside them: what fails twice has failed, the others are told as unstable.
again() {
	[ "$1" -eq 1 ] && [ "$(wc -l <"$tally")" -eq "$parts" ] || return 1
	"$VENV/bin/python" - <<-'END' || return 1
		import json, pathlib, sys
		cache = pathlib.Path(".pytest_cache/v/cache/lastfailed")
		names = sorted(json.loads(cache.read_text())) if cache.exists() else []
		few = 0 < len(names) <= 8
		print(f"{len(names)} failed{'; each is run again, alone:' if few else ''}", *names, sep="\n  ")
		sys.exit(not few)
	END
	wait_for_checks
	pytest_waited --last-failed --last-failed-no-failures none || return 1
	echo "make test: UNSTABLE (failed beside others, passed alone): see the list above"
}
# Workers begin with the same file at the same time, and each would rewrite the assertions of all: 20 s of CPU each.
# Two processes rewrite one half each and keep them.
collect() { "$VENV/bin/pytest" -p no:cacheprovider -p no:schemathesis --collect-only -qq "$@" >/dev/null 2>&1; }
collect tests/[a-r]* --ignore="$openapi" &
tests=$!
collect tests/[s-z]* &
tests="$tests $!"
wait $tests
tests=
# What the tests of decisions and stores reach is measured on the way (tests/services/coverage_tier.py).
rm -rf .coverage htmlcov
export MEASURE_COVERAGE=1
run -n "$WORKERS" -m "not alone" --durations 10 --ignore="$openapi" -p no:schemathesis
unset MEASURE_COVERAGE
"$VENV/bin/coverage" combine --quiet .coverage/data.* && "$VENV/bin/coverage" html --quiet && echo "coverage: htmlcov/index.html"
wait_for_checks
cat "$folder/check" "$folder/openapi"
# By name: collecting all the others takes six seconds.
run -m alone --durations 3 $(grep -rl "mark.alone" tests --include="test_*.py")
# What the first part left to the second must be what that ran: a mark in a file that the pattern misses would be in neither.
awk 'FILENAME ~ /openapi/ { ran += $2; next }
	{ ran += $2; left[FNR] = $3; run[FNR] = $2; parts = FNR }
	END { if (parts < 2) exit
	      printf "%d tests collected and run\n", ran
	      if (left[1] != run[2]) { printf "%d tests were left to run alone, %d of them ran\n", left[1], run[2]; exit 1 } }' \
	"$folder"/*tally || failed=1
[ "$failed" -eq 0 ] || echo "make test: failed, see above" >&2
exit "$failed"
