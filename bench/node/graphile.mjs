// graphile-worker on PostgreSQL: local queue of 2000, completions batched, as its performance page advises.
import { makeWorkerUtils, run, Logger } from "graphile-worker";
import { Cost, inTime, play, quantiles, Tally } from "./contest.mjs";

const SETTINGS = "local queue 2000 (drain) or 500, concurrency 24, completions batched, poll 0.1 s; no history, locks of 4 h";
const QUIET = new Logger(() => () => {});
const CHUNK = 5000;

async function utilsOf(store) {
  const utils = await makeWorkerUtils({ connectionString: store, logger: QUIET });
  await utils.migrate();
  return utils;
}

async function add(utils, dues) {
  for (let start = 0; start < dues.length; start += CHUNK) {
    await utils.addJobs(
      dues.slice(start, start + CHUNK).map((due) => ({ identifier: "noop", payload: { due }, runAt: new Date(due) })),
    );
  }
}

const remaining = (utils) =>
  utils.withPgClient(async (client) => {
    const { rows } = await client.query(
      "SELECT count(*)::int AS n FROM graphile_worker._private_jobs WHERE run_at <= now()",
    );
    return rows[0].n;
  });

async function start(store, hit, tuned) {
  return run({
    connectionString: store,
    logger: QUIET,
    noHandleSignals: true,
    crontab: "",
    taskList: { noop: async (payload) => hit(payload.due) },
    pollInterval: tuned.poll,
    concurrency: tuned.concurrency,
    preset: { worker: { localQueue: { size: tuned.queue }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  });
}

play({
  async drain({ store, n, pending = 0, queue = 2000, concurrency = 24 }) {
    const utils = await utilsOf(store);
    await add(utils, Array(pending).fill(Date.now() + 86_400_000));
    await add(utils, Array(n).fill(Date.now() - 1000));
    await utils.withPgClient((client) => client.query("ANALYZE"));
    const tally = new Tally(n);
    const cost = new Cost();
    const runner = await start(store, () => tally.hit(), { queue, concurrency, poll: 100 });
    await tally.all;
    while (await remaining(utils)) await new Promise((later) => setTimeout(later, 5));
    const ended = performance.now();
    const spent = cost.perRun(n);
    await runner.stop();
    await utils.release();
    return { rate: (n / (ended - tally.first)) * 1000, ...spent };
  },

  async lateness({ store, rate, seconds, at_once = false, lead = 1, queue = 500, concurrency = 24 }) {
    const utils = await utilsOf(store);
    const n = rate * seconds;
    const base = Date.now() + lead * (4000 + n / 4);
    await add(utils, Array.from({ length: n }, (_, i) => (at_once ? base : base + (i * 1000) / rate)));
    await utils.withPgClient((client) => client.query("ANALYZE"));
    const tally = new Tally(n);
    inTime(base, 2000);
    const runner = await start(store, (due) => tally.hit(due), { queue, concurrency, poll: 100 });
    await new Promise((later) => setTimeout(later, Math.max(0, base - Date.now())));
    const cost = new Cost();
    await tally.all;
    const spent = cost.perRun(n);
    await runner.stop();
    await utils.release();
    return { late_ms: quantiles(tally.late), ...spent };
  },

  async create_one({ store, n }) {
    const utils = await utilsOf(store);
    const began = performance.now();
    for (let i = 0; i < n; i++) await utils.addJob("noop", { a: 1 }, { runAt: new Date(Date.now() + 86_400_000) });
    const took = performance.now() - began;
    await utils.release();
    return { rate: (n / took) * 1000 };
  },

  async create_bulk({ store, n }) {
    const utils = await utilsOf(store);
    const began = performance.now();
    await add(utils, Array(n).fill(Date.now() + 86_400_000));
    const took = performance.now() - began;
    await utils.release();
    return { rate: (n / took) * 1000 };
  },
});
