// The programs under measurement, started as a user would start them, in directories that
// are deleted with the benchmark.
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { program } from '../programs.mjs';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const DIST = resolve(process.env.SIMPLETUNER_DIST || join(ROOT, 'dist'));
/** The admin's API token. */
export const ADMIN = 'st_benchmark-benchmark-benchmark';
const PATIENCE_MS = 30_000;

/** The directory for all data, deleted at the end. BENCH_DIR selects the disk. */
export const HOME = mkdtempSync(join(process.env.BENCH_DIR || tmpdir(), 'simpletuner-bench-'));
process.on('exit', () => rmSync(HOME, { recursive: true, force: true, maxRetries: 3 }));

async function freePort() {
  const probe = createServer();
  await new Promise((done) => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

/** Polls every few milliseconds until `isDone` returns true. */
export async function until(condition, isDone, everyMs = 20, patienceMs = PATIENCE_MS) {
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(everyMs)) {
    if (await isDone()) return;
  }
  throw new Error(`timed out after ${patienceMs / 1_000} s waiting for ${condition}`);
}

/** Sends a request over a persistent connection; returns status and text. */
function send(http, url, method, headers, body) {
  return new Promise((done, failed) => {
    const pending = request(url, { method, headers: { 'content-type': 'application/json', ...headers }, agent: http }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk)).on('end', () => done({ status: response.statusCode, text })).on('error', failed);
    });
    pending.on('error', failed).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Requests JSON; any status but 2xx is an error. */
export async function json(http, url, method, headers, body) {
  const { status, text } = await send(http, url, method, headers, body);
  if (status < 200 || status > 299) throw new Error(`${method} ${url} returned ${status}: ${text.slice(0, 300)}`);
  return JSON.parse(text);
}

/** Starts a server and waits until it is ready; `readyAfter` is the duration in ms. Without a database, it uses SQLite. */
export async function startServer({ configs = false, database, dir = mkdtempSync(join(HOME, 'd-')) } = {}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const http = new Agent({ keepAlive: true });
  const args = ['server', '--port', `${port}`, '--data-dir', join(dir, 'data'), ...(configs ? ['--configs-dir', join(ROOT, 'examples/configs')] : [])];
  const shared = database ? { SIMPLETUNER_DATABASE_URL: database } : {};
  const startedAt = performance.now();
  const server = program('server', dir, join(DIST, 'simpletuner'), args, { SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN: ADMIN, SIMPLETUNER_LOCAL: 'off', SIMPLETUNER_RATE_LIMIT: '1000000', ...shared });
  await until('the server to be ready', async () => {
    if (server.child.exitCode !== null) throw new Error(`the server does not start: ${server.lastLines() || await server.ended}`);
    return send(http, `${url}/readyz`, 'GET', {}).then(({ status }) => status === 200, () => false);
  }, 1);
  const readyAfter = performance.now() - startedAt;
  const api = (method, path, body) => json(http, url + path, method, { authorization: `Bearer ${ADMIN}` }, body);
  const kill = async () => {
    http.destroy();
    server.child.kill('SIGKILL');
    await server.ended;
  };
  return { pid: server.child.pid, url, dir, readyAfter, api, kill };
}

/** Starts the real agent of a new worker with a custom trainer, whose home is `home` unless a sandbox replaces it. */
export async function startAgent(server, name, { flags = [], home = server.dir, trainer, sandbox = 'none' }) {
  const { worker_id: worker, token } = await server.api('POST', '/api/admin/workers', { name, worker_type: 'persistent' });
  const workDir = join(server.dir, `work-${name}`);
  const start = () => program(`agent-${name}`, server.dir, join(DIST, 'simpletuner-worker'), ['--persistent', ...flags], {
    HOME: home,
    SIMPLETUNER_ORCHESTRATOR_URL: server.url,
    SIMPLETUNER_WORKER_TOKEN: token,
    SIMPLETUNER_WORK_DIR: workDir,
    SIMPLETUNER_SANDBOX_MIN: sandbox,
    SIMPLETUNER_KEEP_FREE: '0',
    SIMPLETUNER_TRAINER: trainer,
  });
  let agent = start();
  const kill = async () => {
    agent.child.kill('SIGKILL');
    await agent.ended;
  };
  const restart = async () => {
    agent = start();
    return { lastLines: () => agent.lastLines() };
  };
  const untilIdle = () => until(`the agent ${name} to be idle`, async () => (await server.api('GET', `/api/admin/workers/${worker}`)).status === 'idle');
  return { pid: agent.child.pid, worker, workDir, untilIdle, kill, restart };
}

/** Runs this number of jobs, submitted 20 at a time, until all are completed; returns the seconds. */
export async function runJobs(server, count, options = {}) {
  const completed = async () => (await server.api('GET', '/api/queue?status=completed&limit=1')).total;
  const submit = () => server.api('POST', '/api/queue/submit', { config_name: 'digits', target: 'worker', ...options });
  const before = await completed();
  const startedAt = performance.now();
  for (let n = 0; n < count; n += 20) await Promise.all(Array.from({ length: 20 }, submit));
  await until('the jobs to be completed', async () => await completed() >= before + count, 10, 120_000);
  return (performance.now() - startedAt) / 1_000;
}
