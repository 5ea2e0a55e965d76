// BullMQ on Redis (append-only file, fsync always).
import { Queue, Worker } from "bullmq";
import { Cost, inTime, play, quantiles, Tally } from "./contest.mjs";

const SETTINGS = "concurrency 100, jobs removed when done; Redis appendfsync always";
const CHUNK = 1000;

const connectionOf = (store) => ({ host: new URL(store).hostname, port: Number(new URL(store).port) });

async function add(queue, count, options) {
  for (let start = 0; start < count; start += CHUNK) {
    const size = Math.min(CHUNK, count - start);
    await queue.addBulk(Array.from({ length: size }, (_, i) => ({ name: "noop", ...options(start + i) })));
  }
}

const worker = (store, tally) =>
  new Worker("bench", async (job) => tally.hit(job.data.due), {
    connection: { ...connectionOf(store), maxRetriesPerRequest: null },
    concurrency: 100,
    removeOnComplete: { count: 0 },
  });

play({
  async drain({ store, n }) {
    const queue = new Queue("bench", { connection: connectionOf(store) });
    await add(queue, n, () => ({ data: {} }));
    const tally = new Tally(n);
    const cost = new Cost();
    worker(store, tally);
    await tally.all;
    return { rate: (n / (performance.now() - tally.first)) * 1000, ...cost.perRun(n) };
  },

  async lateness({ store, rate, seconds, lead = 1 }) {
    const queue = new Queue("bench", { connection: connectionOf(store) });
    const n = rate * seconds;
    const base = Date.now() + lead * (5000 + n);
    await add(queue, n, (i) => ({
      data: { due: base + (i * 1000) / rate },
      opts: { delay: Math.max(0, base + (i * 1000) / rate - Date.now()) },
    }));
    const tally = new Tally(n);
    inTime(base, 1000);
    worker(store, tally);
    await tally.all;
    return { late_ms: quantiles(tally.late) };
  },
});
