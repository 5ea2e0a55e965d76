// How a contestant on Node is asked: `node graphile.mjs drain '{"n": 20000, …}'` prints one line of JSON.
import { readdirSync, readFileSync } from "node:fs";

export class Tally {
  constructor(n) {
    this.n = n;
    this.count = 0;
    this.late = [];
    this.all = new Promise((resolve) => (this.resolve = resolve));
  }

  hit(due) {
    if (due !== undefined) this.late.push(performance.timeOrigin + performance.now() - due);
    this.count += 1;
    if (this.count === 1) this.first = performance.now();
    if (this.count === this.n) this.resolve();
  }
}

// Before the worker starts: jobs that were not all there well before the first is due would be late by our fault.
export function inTime(base, spare) {
  if (Date.now() > base - spare) throw new Error("the machine was too slow to add the jobs in time: no lateness to tell");
}

export function quantiles(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] * 1000) / 1000;
  return { p50: at(0.5), p99: at(0.99), max: at(1), min: at(0) };
}

// CPU from here on, ours and the database's, per run in µs.
export class Cost {
  constructor() {
    this.own = process.cpuUsage();
    this.server = serverTicks();
  }

  perRun(n) {
    const own = process.cpuUsage(this.own);
    const server = (serverTicks() - this.server) * 10_000; // a tick is 10 ms
    const mine = own.user + own.system;
    return { cpu_us_per_run: mine / n, db_cpu_us_per_run: server / n, cpu_us_all: (mine + server) / n };
  }
}

function serverTicks() {
  const postmaster = process.env.BENCH_POSTMASTER;
  let total = 0;
  for (const name of postmaster ? readdirSync("/proc") : []) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (fields[1] === postmaster) total += Number(fields[11]) + Number(fields[12]);
      else if (name === postmaster) total += fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    } catch {
      // it ended meanwhile
    }
  }
  return total;
}

export async function play(scenarios) {
  const [scenario, given] = process.argv.slice(2);
  const figures = await scenarios[scenario](JSON.parse(given ?? "{}"));
  process.stdout.write(`\n${JSON.stringify(figures)}\n`);
  process.exit(0);
}
