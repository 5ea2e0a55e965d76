"""Who runs which block of the manual, and what a block needs beside its page.

What a page or a block takes for granted stands in GIVEN and BEFORE; what stands for something else, in MEANT. Blocks
that another test types, with brokers, engines or a cluster, are named with that test; what nothing could run here would
be named with the reason.
"""

from __future__ import annotations

import re

from tests.docs.blocks import ROOT, Block, shell_text
from tests.docs.test_every_block import PAGES

__all__ = [
    "ALONE",
    "BEFORE",
    "BLOCKS",
    "BLOCKS_TYPED_BY",
    "ECHO",
    "GIVEN",
    "MEANT",
    "NIGHTLY",
    "NOTHING_RUNS",
    "SERVE",
    "TYPED",
    "TYPED_BY",
    "meant",
    "typed_elsewhere",
]

SHELL = ("sh", "console", "crontab")
NIGHTLY = {"schedule": {"cron": "0 3 * * *"}, "target": {"type": "webhook", "url": "http://127.0.0.1:5003/"}}

TYPED_BY = {
    "docs/checkins.md": "tests/docs/test_checkins_page.py",
    "docs/commands.md": "tests/cluster/test_commands_page.py",
    "docs/containers.md": "tests/cluster/test_containers.py",
    "docs/from-apscheduler.md": "tests/importers/test_howto_pages.py",
    "docs/from-celery-beat.md": "tests/importers/test_howto_pages.py",
    "docs/from-cloud-scheduler.md": "tests/importers/test_howto_pages.py",
    "docs/from-crontab.md": "tests/importers/test_howto_pages.py",
    "docs/from-kubernetes-cronjob.md": "tests/importers/test_howto_pages.py",
    "docs/import.md": "tests/importers/test_page.py",
    "docs/intake.md": "tests/cluster/test_intake.py",
    "docs/kubernetes.md": "tests/cluster/test_kubernetes.py",
    "docs/lambda.md": "tests/cluster/test_lambda.py",
    "docs/plugins.md": "tests/cluster/test_plugin.py",
    "docs/queues.md": "tests/cluster/test_queue.py",
    "docs/results.md": "tests/cluster/test_results_page.py",
    "docs/scripts.md": "tests/cluster/test_scripts_page.py",
    "docs/tutorial.md": "tests/cluster/test_manual.py",
    "docs/workflows.md": "tests/cluster/test_workflows.py",
}
"""Pages whose commands need brokers, engines, clusters or clouds: that test has them, and types the page."""

PROGRAMS_RUN_BY = {
    "docker": "tests/deploy/test_compose.py",
    "./run.sh": "tests/deploy/test_compose.py",
    "make dist": "tests/deploy/test_readme_first_lines.py",
    "make chaos": "tests/proof/test_chaos_smoke.py",
    "make sim": "tests/proof/test_simulation.py",
    "make planted": "tests/proof/test_planted.py",
    "pip install 'onthedot[otel]'": "tests/cluster/test_otlp.py",
}

KUBERNETES = "docs/kubernetes-deployment.md"
CLUSTER, SYSTEMD = "tests/deploy/test_kubernetes_page.py", "tests/deploy/test_systemd_page.py"
SAMPLES = "$ make run          # needs only Python ≥ 3.11 and make: no other service, no Docker, no root"
BLOCKS_TYPED_BY = {
    ("README.md", SAMPLES): "tests/deploy/test_readme_first_lines.py",
    ("docs/bulk.md", "make bench ONLY=bulk"): "tests/deploy/test_bench_block.py",
    ("docs/deployment.md", "git pull && ./run.sh"): "tests/deploy/test_compose.py",
    (KUBERNETES, "kubectl create namespace onthedot"): CLUSTER,
    (KUBERNETES, "kubectl -n onthedot logs -f deployment/onthedot-witness"): CLUSTER,
    (KUBERNETES, "helm repo add prometheus-community https://prometheus-community.github.io/helm-charts"): CLUSTER,
    (KUBERNETES, "sudo useradd --system --home-dir /var/lib/onthedot --shell /usr/sbin/nologin onthedot"): SYSTEMD,
    (KUBERNETES, "sudo systemctl enable --now onthedot-witness"): SYSTEMD,
    ("docs/moving.md", "onthedot migrate-store sqlite:///onthedot.db postgresql://scheduler@db/onthedot --abort"):
    "tests/cli/test_migrate_store.py",
}  # fmt: skip
"""Blocks for a moment, a machine or a cluster that only a test can bring about."""

NOTHING_RUNS: dict[tuple[str, str], str] = {}
"""Blocks that nothing here can run, and why: none."""

OPS = "printf '[channels.ops]\\nurl = \"http://127.0.0.1:5003/\"\\n' > onthedot.toml\n"
SERVE, ECHO = "onthedot serve\n", "onthedot echo\n"
BROKEN = """
onthedot jobs add --key broken --in 1s --url http://127.0.0.1:9/ --attempts 1 --alerts '{"failed": true}'
until onthedot alerts list --json | grep -q broken; do sleep 0.2; done
"""
ADMIN = """
export ONTHEDOT_STORE=postgresql://scheduler@db/onthedot
export ONTHEDOT_KEY=$(onthedot keys create --name reader --scope admin --store $ONTHEDOT_STORE --json \
  | python3 -c 'import json, sys; print(json.load(sys.stdin)["key"])')
unset ONTHEDOT_STORE
"""
GIVEN = {
    "README.md": f"cp -r {ROOT}/examples .\nonthedot serve --jobs examples/jobs.json\n"
    "until ls logs/disk-space/*.log; do sleep 0.2; done\n",
    "docs/alerts.md": OPS + ECHO + SERVE + BROKEN,
    "docs/bulk.md": ECHO + SERVE,
    "docs/changes.md": SERVE
    + 'onthedot jobs add --key nightly --cron "0 2 * * *" --url http://127.0.0.1:5003/\n'
    + "".join(f"onthedot jobs edit nightly --set policy.timeout={n}s\n" for n in (2, 4, 5, 6)),
    "docs/cli.md": OPS + ECHO + "mkdir reports\nprintf 'def send(full):\\n    print(full)\\n' > reports/daily.py\n"
    "echo 'functions = [\"reports.daily:send\"]' | cat - onthedot.toml > both && mv both onthedot.toml\n",
    "docs/jobs-file.md": "",
    "docs/moving.md": "timeout 8 onthedot serve --jobs jobs.yaml > /dev/null 2>&1 || true\n",
    "docs/oversight.md": SERVE
    + 'onthedot jobs add --key nightly-report --cron "0 3 * * *" --url http://127.0.0.1:5003/\n',
    "docs/witness.md": "",
}
"""What a page takes for granted, typed before it."""

MIGRATE = "onthedot migrate --sql > upgrade.sql      # what is pending; --all prints everything, without a connection"
BEFORE = {
    ("docs/cli.md", "onthedot runs list nightly --status FAILED"): "onthedot jobs run nightly\n",
    ("docs/cli.md", "onthedot keys create --name ci --scope write --expires 90d"): ADMIN,
    ("docs/deployment.md", "onthedot keys create --name me --scope admin --store postgresql://…"): "mkdir -p tls\n"
    "openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=jobs.internal "
    "-addext subjectAltName=DNS:jobs.internal -keyout tls/tls.key -out tls/tls.crt 2>&1\ncp tls/tls.crt ca.pem\n",
    ("docs/deployment.md", "onthedot --ca ca.pem jobs list --url https://jobs.internal:8443"):
    "export ONTHEDOT_KEY=$(cat secrets/onthedot-admin-key)\n",
    ("docs/deployment.md", MIGRATE):
    "export ONTHEDOT_STORE=postgresql://scheduler@db/shop\n",
    ("docs/moving.md", "onthedot backup /backups/onthedot.db"): "rm -f onthedot.db*\n" + SERVE,
    ("docs/moving.md", "onthedot restore /backups/onthedot.db"): "cd backups && mkdir backups && mv *.db backups/\n",
    ("docs/observability.md", "onthedot runs bundle 7-1774656000000 -o run.json"): ECHO + SERVE + BROKEN,
    ("docs/witness.md", "onthedot witness --once --json"): SERVE,
}  # fmt: skip
"""What a block takes for granted: by its page and first line."""

A_RUN = "$(onthedot runs list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0][\"id\"])')"
MEANT = {
    "postgresql://…": "postgresql://scheduler@db/onthedot",
    "postgresql://user@db/": "postgresql://scheduler@db/",
    "postgresql://user@db.example/": "postgresql://scheduler@db.example/",
    "https://scheduler.example/": "http://scheduler.example:8000/",
    "Bearer otd_…": "Bearer $(onthedot keys create --name more --scope read --store postgresql://scheduler@db/onthedot "
    "--json | python3 -c 'import json, sys; print(json.load(sys.stdin)[\\\"key\\\"])')",
    "logs/disk-space/7-1794784800000.log": "logs/disk-space/*.log",
    "12-1763234567890": A_RUN,
    "7-1774656000000": A_RUN,
    "bundle 3": "bundle 1",
    "onthedot jobs delete nightly\n": "onthedot jobs delete -y nightly\n",
    "sha256:5f3a…": "$(onthedot scripts put report.py)",
    "/run/secrets/": "./secrets/",
    "/etc/onthedot/tls": "tls/tls",
    "upgrade.sql jobs": "upgrade.sql -h db -U scheduler shop",
    "/backups/": "backups/",
}
"""What stands for something that only the reader has."""


def typed_elsewhere(block: Block) -> str | None:
    """The test that runs it, because it needs what that test has."""
    if block.page in TYPED_BY:
        return TYPED_BY[block.page]
    if (block.page, block.first) in BLOCKS_TYPED_BY:
        return BLOCKS_TYPED_BY[block.page, block.first]
    text = shell_text(block)
    for program, test in PROGRAMS_RUN_BY.items():
        if re.search(rf"^(?:sudo |\S*python -m )?{re.escape(program)}", text, re.MULTILINE):
            return test
    return None


BLOCKS = [block for blocks in PAGES.values() for block in blocks if block.language in SHELL]
TYPED = {
    page: mine
    for page, blocks in PAGES.items()
    if (
        mine := [
            block
            for block in blocks
            if block.language in SHELL
            and typed_elsewhere(block) is None
            and (block.page, block.first) not in NOTHING_RUNS
        ]
    )
}

ALONE = {"docs/chains.md", "docs/concurrency.md", "docs/deployment.md", "docs/observability.md", "docs/operations.md"}
"""Pages that start their own server before anything else."""


def meant(text: str) -> str:
    for shown, real in MEANT.items():
        text = text.replace(shown, real)
    assert "…" not in re.sub(r"#.*", "", text), f"MEANT does not say what {text!r} stands for"
    return text
