# On the Dot. `make help` lists the doors; each is one line of shell, the work is done by the tools it names.

VENV ?= .venv
# How many processes share the tests, each with a PostgreSQL of its own: twice the two cores, since tests wait. (Three took
# 300 s for what four did in 261 and in 292.)
WORKERS ?= 4
export VENV PYTHON WORKERS

.DEFAULT_GOAL := help
.PHONY: help run test venv check sim hostile fuzz planted fix chaos lock bench bench-10m soak

help: ## show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## start API, dashboard and engine on SQLite with the sample jobs, at http://127.0.0.1:8000 (PORT=9000 changes it)
	@scripts/venv.sh run
	@exec $(VENV)/bin/onthedot serve --jobs examples/jobs.json $(if $(PORT),--port $(PORT))

test: venv ## run every test, on SQLite and on a PostgreSQL of its own, and `make check` beside them
	@MAKE="$(MAKE)" scripts/test.sh

venv: ## make the environment with all development tools in .venv
	@scripts/venv.sh dev

check: venv ## format, lint, types, import rules, nothing of one machine in the files
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo
	$(VENV)/bin/deptry src
	$(VENV)/bin/python scripts/check_tracked.py

sim: venv ## play SEEDS=1000 simulated clusters of three nodes for ten virtual minutes each (SEED=7 plays one again)
	$(VENV)/bin/python -m proof.sim $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000))

hostile: venv ## play hostile requests against a real server: how long each held its loop (ONLY=sync, SCALE=0.1)
	$(VENV)/bin/python -m proof.hostile $(if $(ONLY),--only "$(ONLY)") $(if $(SCALE),--scale $(SCALE))

fuzz: venv ## random input for all that reads what strangers wrote: INPUTS=12000000, SEED=1, ONLY=urls
	$(VENV)/bin/python -m proof.fuzz --inputs $(or $(INPUTS),1000000) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

planted: venv ## plant some two hundred bugs one by one: 95 % must be seen (ONLY="claim: ,retry: " picks by name)
	$(VENV)/bin/python -m proof.planted $(if $(ONLY),--only "$(ONLY)")

fix: venv ## format, and mend what the linter can mend by itself
	$(VENV)/bin/ruff check --fix --quiet .
	$(VENV)/bin/ruff format --quiet .

chaos: venv ## real nodes under faults: SIZE=smoke|short|full|points, SEED=…, PROFILE=kill (one kind alone), failover_sync, failover_async
	$(VENV)/bin/python -m proof.chaos --size $(or $(SIZE),smoke) $(if $(SEED),--seed $(SEED)) $(if $(PROFILE),--profile $(PROFILE))

lock: ## pin the requirements anew (UPGRADE=--upgrade takes the newest versions)
	@UPGRADE="$(UPGRADE)" scripts/lock.sh

MODE ?= quick
bench: venv ## measure ours and the peers on the same work (MODE=full takes about an hour; ONLY=drain,webhooks picks)
	@bench/install.sh
	$(VENV)/bin/python -m bench --mode $(MODE) $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-10m: venv ## drain and claim with 0, 1 M and 10 M more pending jobs, turn by turn (20 GB of disk; DISK=/where/it/lies)
	$(VENV)/bin/python -m bench --mode huge $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(DISK),--disk $(DISK))

soak: venv ## 500 firings a second for SECONDS=600: memory, tables, dead rows and WAL over time
	$(VENV)/bin/python -m bench --mode soak --seconds $(or $(SECONDS),600)
