// pg-boss on PostgreSQL: batches of 1000, the shortest poll it allows.
import * as pgboss from "pg-boss";
import pg from "pg";
import { Cost, inTime, play, quantiles, Tally } from "./contest.mjs";

const SETTINGS = "batches of 1000, polling every 0.5 s (its least), completed jobs kept";
const PgBoss = pgboss.PgBoss ?? pgboss.default;
const CHUNK = 5000;

async function booted(store) {
  const boss = new PgBoss({ connectionString: store, schedule: false, supervise: false });
  boss.on("error", () => {});
  await boss.start();
  await boss.createQueue("noop");
  return boss;
}

async function add(boss, dues) {
  for (let start = 0; start < dues.length; start += CHUNK) {
    const part = dues.slice(start, start + CHUNK);
    const jobs = part.map((due) => ({ name: "noop", data: { due }, startAfter: new Date(due) }));
    await (boss.insert.length > 1 ? boss.insert("noop", jobs) : boss.insert(jobs));
  }
}

const later = (ms) => new Promise((done) => setTimeout(done, ms));

async function start(boss, tally, tell) {
  await boss.work("noop", { batchSize: 1000, pollingIntervalSeconds: 0.5 }, async (jobs) => {
    for (const job of jobs) tally.hit(tell ? job.data.due : undefined);
  });
}

play({
  async drain({ store, n, pending = 0 }) {
    const boss = await booted(store);
    await add(boss, Array(pending).fill(Date.now() + 86_400_000));
    await add(boss, Array(n).fill(Date.now() - 1000));
    const client = new pg.Client(store);
    await client.connect();
    await client.query("ANALYZE");
    const tally = new Tally(n);
    const cost = new Cost();
    // Its worker sleeps between batches; fetching and completing by hand is its fastest way.
    const began = performance.now();
    while (tally.count < n) {
      const jobs = await boss.fetch("noop", { batchSize: 1000 });
      for (const _ of jobs) tally.hit();
      if (jobs.length) await boss.complete("noop", jobs.map((job) => job.id));
    }
    const ended = performance.now();
    return { rate: (n / (ended - began)) * 1000, ...cost.perRun(n) };
  },

  async lateness({ store, rate, seconds, lead = 1 }) {
    const boss = await booted(store);
    const n = rate * seconds;
    const base = Date.now() + lead * (3000 + n / 5);
    await add(boss, Array.from({ length: n }, (_, i) => base + (i * 1000) / rate));
    const tally = new Tally(n);
    inTime(base, 1000);
    await start(boss, tally, true);
    await later(Math.max(0, base - Date.now()));
    const cost = new Cost();
    await tally.all;
    return { late_ms: quantiles(tally.late), ...cost.perRun(n) };
  },

  async create_bulk({ store, n }) {
    const boss = await booted(store);
    const began = performance.now();
    await add(boss, Array(n).fill(Date.now() + 86_400_000));
    return { rate: (n / (performance.now() - began)) * 1000 };
  },
});
