// A server with a million jobs.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FakeAgent } from './fake-agent.mjs';
import { figure, millis, quantile } from './figure.mjs';
import { ADMIN, startServer, until } from './fleet.mjs';

const TEMPLATES = 20;
const COPIES = 50_000;

const seconds = (value) => `${(value / 1_000).toFixed(1)} s`;
const mib = (value) => `${(value / 2 ** 20).toFixed(0)} MiB`;

/** Runs statements of SQL with the database's own means. */
function runSql(database, dir, statements) {
  const script = statements.join(';\n') + ';';
  const options = { input: script, stdio: ['pipe', 'pipe', 'inherit'], maxBuffer: 2 ** 26, encoding: 'utf8' };
  if (database) return execFileSync('psql', ['--quiet', '--no-align', '--tuples-only', '-v', 'ON_ERROR_STOP=1', database], options);
  const file = join(dir, 'data', 'orchestrator.db');
  const python = 'import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\nscript = sys.stdin.read()\n'
    + "if script.startswith('PRAGMA'): print('\\n'.join(row[1] for row in db.execute(script)))\nelse: db.executescript('BEGIN;' + script + 'COMMIT;')";
  return execFileSync('python3', ['-c', python, file], options);
}

function columns(database, dir, table) {
  const query = database ? `SELECT column_name FROM information_schema.columns WHERE table_name = '${table}'` : `PRAGMA table_info(${table})`;
  return runSql(database, dir, [query]).trim().split('\n');
}

/** Completes a job of each configuration, with metrics. */
async function completeTemplates(server) {
  const agent = await FakeAgent.connect(server, 'bench');
  for (let n = 0; n < TEMPLATES; n += 1) {
    const files = { 'config.json': JSON.stringify({ model_family: 'flux', lora_rank: 4 << (n % 5), learning_rate: 1e-5 * (n + 1) }) };
    await server.api('PUT', `/api/configs/sweep-${n}`, { files });
    const job = { config_name: `sweep-${n}`, target: 'worker', name: `Sweep ${n}`, tags: ['ablation', `rank-${n % 5}`] };
    const [offer] = await Promise.all([agent.offer(), server.api('POST', '/api/queue/submit', job)]);
    await agent.report(offer, 'starting');
    await agent.progress(offer, [{ step: 100, total_steps: 100, at: new Date().toISOString(), loss: 0.5, learning_rate: 1e-5 }]);
    await agent.report(offer, 'completed');
  }
  agent.close();
}

/** Copies the templates until there are a million jobs, each with a time, a name and a loss of its own. */
function copyTemplates(database, dir) {
  const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${COPIES})`;
  const copy = (table, changed) => {
    const all = columns(database, dir, table);
    const values = all.map((column) => changed[column] ?? `t.${column}`);
    return `INSERT INTO ${table} (${all.join(', ')}) ${numbers} SELECT ${values.join(', ')} FROM ${table} t CROSS JOIN numbers`;
  };
  const jobs = copy('jobs', {
    id: 't.id || n', number: 't.number + n', job_name: "'Run ' || n", submitted_at: 't.submitted_at - n * 7000', state_since: 't.state_since - n * 7000',
  });
  const attempts = copy('attempts', {
    job_id: 't.job_id || n', token_digest: 't.token_digest || n', offered_at: 't.offered_at - n * 7000', started_at: 't.started_at - n * 7000',
    ended_at: 't.ended_at - n * 7000', progress: "replace(t.progress, '0.5', '0.' || n)",
  });
  // PostgreSQL does the same by itself some minutes later.
  runSql(database, dir, [jobs, attempts, 'ANALYZE']);
}

function memory(pid) {
  const [, kib] = readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+) kB/);
  return Number(kib) * 1_024;
}

/** Measures the list of a million jobs: its first page, and queries that were not asked before. */
export async function million() {
  const database = process.env.BENCH_POSTGRES;
  const first = await startServer({ database });
  await completeTemplates(first);
  await first.kill();
  copyTemplates(database, first.dir);
  const server = await startServer({ database, dir: first.dir });
  const readyAt = performance.now();
  await until('the index of jobs', async () => (await server.api('GET', '/api/queue?q=run&limit=1')).total > 0, 20, 120_000);
  const loaded = performance.now() - readyAt;
  const html = async (path) => {
    const startedAt = performance.now();
    const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${ADMIN}`, accept: 'text/html' } });
    if (response.status !== 200) throw new Error(`${path} returned ${response.status}`);
    await response.arrayBuffer();
    return performance.now() - startedAt;
  };
  const pages = [];
  for (let n = 0; n < 40; n += 1) pages.push(await html('/jobs'));
  const queries = [];
  const { total } = await server.api('GET', '/api/queue?limit=1');
  for (let n = 0; n < 200; n += 1) {
    const query = [`run ${n}7`, `loss<0.${100 + n}`, `tag:rank-${n % 5} #${n + 300}`, `config:sweep-${n % 20} lora_rank>=8`, `status:completed submitted>-${n + 1}h`, `${n}77`][n % 6];
    const sort = ['', '&sort=-metric.loss', '&sort=name', '&sort=config'][n % 4];
    const startedAt = performance.now();
    await server.api('GET', `/api/queue?limit=50&q=${encodeURIComponent(query)}${sort}`);
    queries.push(performance.now() - startedAt);
  }
  const engine = database ? 'PostgreSQL' : 'SQLite';
  figure(`list of ${total.toLocaleString('en')} jobs, ${engine}`, [
    ['first page, median', quantile(pages.slice(5), 0.5), millis, 50], ['p90', quantile(pages.slice(5), 0.9), millis],
    ['new query, p50', quantile(queries, 0.5), millis], ['p99', quantile(queries, 0.99), millis, 100],
    ['first query after the start', loaded, seconds], ['memory', memory(server.pid), mib],
  ], '35 pages as HTML and 200 different queries over loopback until the last byte');
  await server.kill();
}
