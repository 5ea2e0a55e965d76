# On the Dot. `make help` lists the targets.

VENV ?= .venv
# Number of test processes, each with its own PostgreSQL: twice the two cores, because tests wait. (Three took 300 s, four
# took 261 and 292 s.)
WORKERS ?= 4
export VENV PYTHON WORKERS

.DEFAULT_GOAL := help
.PHONY: help run demo test coverage test-pages test-deploy test-manual screenshots venv check sim hostile fuzz planted docs dist audit fix chaos lock bench bench-10m soak

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## start the API, dashboard and engine on SQLite with the sample jobs, at http://127.0.0.1:8000 (PORT=9000 changes the port)
	@scripts/venv.sh run
	@exec $(VENV)/bin/onthedot serve --jobs examples/jobs.json $(if $(PORT),--port $(PORT))

demo: ## start a busy company with two weeks of history in .demo/ (PORT=9000; FRESH=1 starts anew; STORE=postgresql://…)
	@scripts/venv.sh run
	@exec $(VENV)/bin/python -m examples.demo $(if $(PORT),--port $(PORT)) $(if $(STORE),--store $(STORE)) $(if $(FRESH),--fresh)

test: venv ## run `make check` and all tests, on SQLite and on a temporary PostgreSQL
	@MAKE="$(MAKE)" scripts/test.sh

coverage: venv ## measure which lines the tests of decisions and stores reach: htmlcov/index.html (`make test` leaves it too)
	@rm -rf .coverage htmlcov
	MEASURE_COVERAGE=1 $(VENV)/bin/pytest -q -n $(WORKERS) -p no:schemathesis -k "not postgres" tests/unit tests/store
	@$(VENV)/bin/coverage combine --quiet .coverage/data.* && $(VENV)/bin/coverage html --quiet
	@$(VENV)/bin/coverage report | tail -1 && echo "coverage: htmlcov/index.html"

test-pages: venv ## walk every page of the dashboard in Chromium: both databases, light and dark, phone and desk, axe, keyboard
	PAGES=1 $(VENV)/bin/pytest -q -n 2 tests/pages

test-deploy: venv ## build the image, start compose.yaml on a real Docker Engine, kill and stop every container, count the firings; helm, promtool, systemd
	DEPLOY=1 $(VENV)/bin/pytest -q -s -x --timeout 1500 tests/deploy

test-manual: venv ## type every shell block of the manual in a network of its own (root); prints how many are run, and by which test
	MANUAL=1 $(VENV)/bin/pytest -q -s --timeout 900 tests/manual

screenshots: venv ## take pictures of a running demo into docs/images (ADDRESS=http://127.0.0.1:8000, FOLDER=…, ALL=1 for every page)
	$(VENV)/bin/python scripts/screenshots.py $(if $(ADDRESS),--address $(ADDRESS)) $(if $(FOLDER),--folder $(FOLDER)) $(if $(ALL),--all)

venv: ## create the development environment in .venv
	@scripts/venv.sh dev

check: venv ## check format, lint, types, import rules and dependencies
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo
	$(VENV)/bin/deptry src
	$(VENV)/bin/python scripts/check_tracked.py

sim: venv ## simulate SEEDS=1000 clusters of three nodes for ten virtual minutes each (SEED=7 repeats one)
	$(VENV)/bin/python -m proof.sim $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000))

hostile: venv ## send hostile requests to a real server and measure how long each blocks the event loop (ROUNDS=3, ONLY=sync, SCALE=0.1)
	$(VENV)/bin/python -m proof.hostile --rounds $(or $(ROUNDS),1) $(if $(ONLY),--only "$(ONLY)") $(if $(SCALE),--scale $(SCALE))

fuzz: venv ## fuzz all parsers of untrusted input (INPUTS=12000000, SEED=1, ONLY=urls)
	$(VENV)/bin/python -m proof.fuzz --inputs $(or $(INPUTS),1000000) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

planted: venv ## inject bugs one by one; 95 % must be detected (ONLY="claim: ,retry: " selects by name)
	$(VENV)/bin/python -m proof.planted $(if $(ONLY),--only "$(ONLY)")

docs: venv ## build the manual as a site in site/ and follow every link in it
	$(VENV)/bin/python scripts/build_docs.py

dist: ## build the wheel, the source archive and a bill of materials (CycloneDX) in dist/
	@scripts/venv.sh run
	$(VENV)/bin/hatchling build
	$(VENV)/bin/python scripts/sbom.py dist

audit: venv ## look up known vulnerabilities of everything that an installation contains (needs the network)
	@scripts/audit.sh

fix: venv ## format, and apply automatic lint fixes
	$(VENV)/bin/ruff check --fix --quiet .
	$(VENV)/bin/ruff format --quiet .

chaos: venv ## run real nodes under faults (SIZE=smoke|short|full|points, SEED=…, PROFILE=kill|…|failover_sync|failover_async)
	$(VENV)/bin/python -m proof.chaos --size $(or $(SIZE),smoke) $(if $(SEED),--seed $(SEED)) $(if $(PROFILE),--profile $(PROFILE))

lock: ## update the locked requirements (UPGRADE=--upgrade takes the newest versions)
	@UPGRADE="$(UPGRADE)" scripts/lock.sh

MODE ?= quick
bench: venv ## benchmark On the Dot and its peers (MODE=full takes about an hour; ONLY=drain,webhooks selects)
	@bench/install.sh
	$(VENV)/bin/python -m bench --mode $(MODE) $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-10m: venv ## benchmark drain and claim with 0, 1 M and 10 M more pending jobs (20 GB of disk; DISK=/path)
	$(VENV)/bin/python -m bench --mode huge $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(DISK),--disk $(DISK))

soak: venv ## fire RATE=500 a second for SECONDS=600 and measure what grows (FULL=1: retention, alerts, traces on, every call checked; PATRONI=1: and the database fails over)
	$(VENV)/bin/python -m bench --mode soak $(if $(SECONDS),--seconds $(SECONDS)) $(if $(RATE),--rate $(RATE)) $(if $(FULL),--full) $(if $(PATRONI),--patroni)
