// A user's script with the types that a generator created from the API's description (`scripts/clients`).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

type Job = components['schemas']['JobView'];
type Status = components['schemas']['JobStatus'];

const ENDED: readonly Status[] = ['completed', 'failed', 'cancelled'];
const TIMEOUT_MS = 120_000;

const [url, token, agent, config] = process.argv.slice(2) as [string, string, string, string];
const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });

/** Returns the data of a response, which must be successful. */
function expectData<T>(response: { data?: T; error?: unknown }): T {
  assert.ok(response.data !== undefined, JSON.stringify(response.error));
  return response.data;
}

/** Polls a job until it has ended. */
async function follow(id: string): Promise<Job> {
  for (const end = Date.now() + TIMEOUT_MS; Date.now() < end; await sleep(200)) {
    const job = expectData(await client.GET('/api/queue/{id}', { params: { path: { id } } }));
    if (ENDED.includes(job.status)) return job;
  }
  throw new Error(`${id} has not ended`);
}

const body = { name: 'typescript', worker_type: 'persistent' } as const;
const worker = expectData(await client.POST('/api/admin/workers', { body }));
const duplicate = await client.POST('/api/admin/workers', { body });
const problem: components['schemas']['Problem'] | undefined = duplicate.error;
assert.equal(problem?.code, 'name_taken');

const files = Object.fromEntries(readdirSync(config).map((name) => [name, readFileSync(join(config, name), 'utf8')]));
const stored = expectData(
  await client.PUT('/api/configs/{name}', {
    params: { path: { name: 'from-typescript' }, header: { 'If-None-Match': '*' } },
    body: { files },
  }),
);
assert.equal(stored.revision, 1);

const job = { config_name: 'from-typescript', target: 'worker', max_retries: 0 } as const;
const running = spawn(agent, ['--persistent'], {
  env: { ...process.env, SIMPLETUNER_WORKER_TOKEN: worker.token },
  stdio: ['ignore', 2, 2],
});
const exited = once(running, 'exit');
let completed: Job;
try {
  const submitted = expectData(await client.POST('/api/queue/submit', { body: job }));
  assert.ok('job_id' in submitted, 'a job, and no preview');
  completed = await follow(submitted.job_id);
  assert.equal(completed.status, 'completed', JSON.stringify(completed));
  assert.equal(completed.worker_id, worker.worker_id);
  const log = expectData(await client.GET('/api/queue/{id}/logs/lines', { params: { path: { id: completed.job_id } } }));
  assert.ok(log.total > 0 && log.lines[0]?.text);
} finally {
  running.kill();
}
await exited;

const unmatchedJob = { ...job, worker_labels: { gpu_type: 'none-has-it' } };
const waiting = expectData(await client.POST('/api/queue/submit', { body: unmatchedJob }));
assert.ok('job_id' in waiting && waiting.status === 'queued', JSON.stringify(waiting));
expectData(await client.POST('/api/queue/{id}/cancel', { params: { path: { id: waiting.job_id } } }));
assert.equal((await follow(waiting.job_id)).status, 'cancelled');
console.log(JSON.stringify({ completed: completed.job_id, cancelled: waiting.job_id }));
