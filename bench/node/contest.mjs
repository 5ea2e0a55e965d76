// How a contestant on Node is asked: `node graphile.mjs drain '{"n": 20000, …}'` prints one line of JSON.

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

export function quantiles(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] * 1000) / 1000;
  return { p50: at(0.5), p99: at(0.99), max: at(1), min: at(0) };
}

export async function play(scenarios) {
  const [scenario, given] = process.argv.slice(2);
  const figures = await scenarios[scenario](JSON.parse(given ?? "{}"));
  process.stdout.write(`\n${JSON.stringify(figures)}\n`);
  process.exit(0);
}
