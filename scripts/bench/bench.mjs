// The benchmarks, called by scripts/bench/run. Each figure is one line: subject, measured value, target, and method.
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, fdatasyncSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stopAll } from '../programs.mjs';
import { agent, jobs, sandbox } from './agent.mjs';
import { FakeAgent } from './fake-agent.mjs';
import { figure, millis, quantile } from './figure.mjs';
import { DIST, ROOT, startServer } from './fleet.mjs';
import { million } from './million.mjs';
import { busy, compare, latency, list, paint } from './page.mjs';
import { peers } from './peers.mjs';

/** Measures from before the start of the process to the first 200 of /readyz; creates the database. */
async function start() {
  const times = [];
  for (let n = 0; n < 20; n += 1) {
    const server = await startServer();
    times.push(server.readyAfter);
    await server.kill();
  }
  const parts = [['median', quantile(times, 0.5), millis, 300], ['p90', quantile(times, 0.9), millis]];
  figure('server, cold start to ready', parts, '20 starts, each in an empty data directory, /readyz asked each ms');
}

/** Measures a durable write on this disk: SQLite runs with synchronous=FULL, so no submit can be faster. */
function syncLatency(dir) {
  const file = openSync(join(dir, 'sync-latency'), 'w');
  const page = Buffer.alloc(4096, 1);
  const times = Array.from({ length: 100 }, () => {
    const startedAt = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    return performance.now() - startedAt;
  });
  closeSync(file);
  return times;
}

/** Measures from before a submit is sent to the arrival of the offer at an idle agent. */
async function dispatch() {
  const server = await startServer({ configs: true });
  const agent = await FakeAgent.connect(server, 'bench');
  const times = [];
  for (let n = 0; n < 105; n += 1) {
    const startedAt = performance.now();
    const [offer] = await Promise.all([agent.offer(), server.api('POST', '/api/queue/submit', { config_name: 'digits', target: 'worker' })]);
    if (n >= 5) times.push(offer.at - startedAt); // the first runs warm up
    for (const status of ['starting', 'completed']) await agent.report(offer, status);
    await sleep(20 + Math.random() * 100);
  }
  agent.close();
  const parts = [['p50', quantile(times, 0.5), millis, 5], ['p99', quantile(times, 0.99), millis, 25], ['max', Math.max(...times), millis]];
  figure('submit to offer on an idle agent\'s stream', parts, '100 submits, 20 to 120 ms apart, from before the POST to the event\'s bytes');
  const synced = syncLatency(server.dir);
  const sync = [['p50', quantile(synced, 0.5), millis], ['p99', quantile(synced, 0.99), millis]];
  figure('  the disk alone, for comparison', sync, '100 times 4 KiB written and fdatasync\'ed in the data directory');
  await server.kill();
}

/** Prints the sizes of the files that users download. */
function size() {
  const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const kb = (bytes) => `${(bytes / 1_000).toFixed(0)} kB`;
  const show = (subject, file, unit, target) => figure(subject, [['', statSync(file).size, unit, target]], 'size of the file');
  show('agent, size', join(DIST, 'simpletuner-worker'), mib, 11 * 2 ** 20);
  show('server, size', join(DIST, 'simpletuner'), mib);
  const pkg = join(DIST, 'web/site/pkg');
  const sent = existsSync(pkg) ? readdirSync(pkg).filter((name) => name.endsWith('.wasm.br')) : [];
  const every = sent.find((name) => name.startsWith('simpletuner.'));
  if (!every) throw new Error(`there is no simpletuner.….wasm.br in ${pkg}`);
  show('every page, WebAssembly as sent', join(pkg, every), kb, 442_000);
  for (const part of sent.filter((name) => name.startsWith('split_'))) show(`  and ${part.match(/split_+(\w+?)(?:_view)?_\d/)[1]}`, join(pkg, part), kb);
}

function machine() {
  const commit = execFileSync('git', ['describe', '--always', '--dirty= with changes'], { cwd: ROOT, encoding: 'utf8' }).trim();
  return `${availableParallelism()} cores (${cpus()[0].model}), Linux ${release()}, load ${loadavg()[0].toFixed(1)}, Node ${process.version}, commit ${commit}`;
}

const FIGURES = { start, dispatch, agent, sandbox, jobs, peers, size, paint, latency, busy, list, compare, million };
// The million runs once per database.
const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(FIGURES).filter((name) => name !== 'million');
const unknown = names.filter((name) => !Object.hasOwn(FIGURES, name));
if (unknown.length > 0) {
  console.error(`error: there is no figure "${unknown[0]}"; there are: ${Object.keys(FIGURES).join(', ')}`);
  process.exit(2);
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));

console.log(machine());
for (const name of names) {
  try {
    await FIGURES[name]();
  } catch (error) {
    console.log(`${name}: not measured: ${error.message}`);
  }
  await stopAll();
}
process.exit(0);
