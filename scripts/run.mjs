// Runs the demo, called by scripts/run after the build. It starts the server, creates a worker (once), starts
// its agent on this host, submits a small training job, shows its progress and results, and runs until Ctrl-C.
// It stops only what it started.
//
//   HOST, PORT   the address on which the server listens (127.0.0.1, 8001)
//   DATA_DIR     the directory for all data (~/.local/share/simpletuner/demo)
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { progressBar } from './progress.mjs';
import { program, stopAll } from './programs.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const HOST = process.env.HOST || '127.0.0.1';
const PORT = Number(process.env.PORT || 8001);
const DATA = resolve(process.env.DATA_DIR || join(process.env.XDG_DATA_HOME || join(homedir(), '.local/share'), 'simpletuner/demo'));
const ADMIN_TOKEN = join(DATA, 'admin-token');
const WORKER_TOKEN = join(DATA, 'worker-token');
const WORKER = join(DATA, 'worker.json'); // the worker of that token
const URL_HOST = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[HOST] ?? (HOST.includes(':') ? `[${HOST}]` : HOST);
const SERVER = `http://${URL_HOST}:${PORT}`;

const say = console.log;
/** Ends the demo with a message for the user and without a stack trace. */
class Problem extends Error {}

function secret(file, value) {
  writeFileSync(file, `${value}\n`, { mode: 0o600 });
}

async function api(method, path, body) {
  const response = await fetch(SERVER + path, {
    method,
    headers: { authorization: `Bearer ${readFileSync(ADMIN_TOKEN, 'utf8').trim()}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(15_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Problem(`${method} ${path} returned ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}

async function requireFreePort() {
  const probe = createServer();
  await new Promise((done, failed) => {
    probe.once('error', failed);
    probe.listen(PORT, HOST, () => probe.close(done));
  }).catch((error) => {
    if (error.code !== 'EADDRINUSE') throw new Problem(`cannot listen on ${HOST}:${PORT}: ${error.message}`);
    throw new Problem(`port ${PORT} is in use, maybe by another demo. Choose one: make run PORT=${PORT + 1} DATA_DIR=…`);
  });
}

async function startServer() {
  if (!existsSync(ADMIN_TOKEN)) secret(ADMIN_TOKEN, `st_${randomBytes(32).toString('base64url')}`);
  const server = program('server', join(DATA, 'log'), join(ROOT, 'dist/simpletuner'),
    ['server', '--host', HOST, '--port', String(PORT), '--data-dir', DATA, '--configs-dir', join(ROOT, 'examples/configs')],
    { SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN_FILE: ADMIN_TOKEN, SIMPLETUNER_LOCAL: 'off' });
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(100)) {
    const ready = await fetch(`${SERVER}/readyz`, { signal: AbortSignal.timeout(2_000) }).then((r) => r.ok, () => false);
    if (ready) return;
  }
  throw new Problem(`the server has not become ready in 30 seconds; its last lines:\n${server.lastLines()}`);
}

/** Returns the worker of an earlier start if the server still lists it, or else a new one. */
async function enrolWorker() {
  const { workers } = await api('GET', '/api/admin/workers');
  if (existsSync(WORKER) && existsSync(WORKER_TOKEN)) {
    const stored = JSON.parse(readFileSync(WORKER, 'utf8'));
    if (workers.some((worker) => worker.worker_id === stored.worker_id)) return stored.name;
  }
  let name = `${hostname()}-demo`;
  for (let n = 2; workers.some((worker) => worker.name === name); n += 1) name = `${hostname()}-demo-${n}`;
  const created = await api('POST', '/api/admin/workers', { name, worker_type: 'persistent' });
  secret(WORKER_TOKEN, created.token);
  writeFileSync(WORKER, `${JSON.stringify({ worker_id: created.worker_id, name })}\n`);
  return name;
}

function startAgent(name) {
  // A persistent agent would leave its trainer running when it stops. The demo leaves
  // nothing running: the job is requeued.
  program('agent', join(DATA, 'log'), join(ROOT, 'dist/simpletuner-worker'), ['--on-stop', 'requeue', '--stop-grace', '5'], {
    SIMPLETUNER_ORCHESTRATOR_URL: SERVER,
    SIMPLETUNER_WORKER_TOKEN_FILE: WORKER_TOKEN,
    SIMPLETUNER_WORKER_NAME: name,
    SIMPLETUNER_WORKER_PERSISTENT: 'true',
    SIMPLETUNER_WORK_DIR: join(DATA, 'worker'),
    SIMPLETUNER_LOG_FORMAT: 'text', // its last lines are shown if it ends unexpectedly
    PYTHONPATH: join(ROOT, 'examples/trainer'),
  });
}

async function trainDemo() {
  const { job_id: id } = await api('POST', '/api/queue/submit', { config_name: 'digits', target: 'worker' });
  say(`Training the example configuration "digits" as job ${id}:`);
  const bar = progressBar();
  for (;;) {
    const job = await api('GET', `/api/queue/${id}`);
    bar.show(job);
    if (['completed', 'failed', 'cancelled'].includes(job.status)) {
      bar.end();
      if (job.status !== 'completed') say(`The job has ${job.status}: ${job.error ?? 'no reason given'} (see ${DATA}/log)`);
      break;
    }
    await sleep(250);
  }
  const { artifacts } = await api('GET', `/api/queue/${id}/artifacts`);
  if (artifacts.length > 0) say('Results:');
  for (const { path, kind, size_bytes: size, url } of artifacts) {
    say(`  ${path}  (${kind}, ${Math.ceil(size / 1024)} KiB)  ${url.startsWith('/') ? SERVER + url : url}`);
  }
}

async function main() {
  mkdirSync(join(DATA, 'log'), { recursive: true, mode: 0o700 });
  await requireFreePort();
  say(`Starting the server (data and logs in ${DATA})`);
  await startServer();
  const name = await enrolWorker();
  say(`Starting the agent of worker "${name}"`);
  startAgent(name);
  await trainDemo();
  say(`
The dashboard:  ${SERVER}/
Sign in with:   ${readFileSync(ADMIN_TOKEN, 'utf8').trim()}
                (an API token with all permissions, stored in ${ADMIN_TOKEN})

Everything runs until you press Ctrl-C.`);
}

let isStopping = false;
async function stop(code, message) {
  if (isStopping) return;
  isStopping = true;
  if (message) console.error(message);
  await stopAll();
  process.exit(code);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    if (isStopping) process.exit(130); // a second request: stop immediately
    stop(0, '\nStopping the agent and the server');
  });
}
program.onUnexpectedEnd = (name, outcome, lines) =>
  stop(1, `\nerror: the ${name} ended unexpectedly (${outcome}); its last lines, from ${DATA}/log/${name}.log:\n${lines}`);

main().catch((error) => stop(1, `error: ${error instanceof Problem ? error.message : error.stack}`));
