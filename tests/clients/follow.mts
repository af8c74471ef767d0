// A user's script with the types that a generator made of the API's description (`scripts/clients`).
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
const PATIENCE = 120_000;

const [url, token, agent, config] = process.argv.slice(2) as [string, string, string, string];
const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });

/** What was answered, if all went well. */
function good<T>(answer: { data?: T; error?: unknown }): T {
  assert.ok(answer.data !== undefined, JSON.stringify(answer.error));
  return answer.data;
}

/** Looks at a job until it has ended. */
async function follow(id: string): Promise<Job> {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await sleep(200)) {
    const job = good(await client.GET('/api/queue/{id}', { params: { path: { id } } }));
    if (ENDED.includes(job.status)) return job;
  }
  throw new Error(`${id} has not ended`);
}

const body = { name: 'typescript', worker_type: 'persistent' } as const;
const made = good(await client.POST('/api/admin/workers', { body }));
const twice = await client.POST('/api/admin/workers', { body });
const problem: components['schemas']['Problem'] | undefined = twice.error;
assert.equal(problem?.code, 'name_taken');

const files = Object.fromEntries(readdirSync(config).map((name) => [name, readFileSync(join(config, name), 'utf8')]));
const stored = good(
  await client.PUT('/api/configs/{name}', {
    params: { path: { name: 'from-typescript' }, header: { 'If-None-Match': '*' } },
    body: { files },
  }),
);
assert.equal(stored.revision, 1);

const job = { config_name: 'from-typescript', target: 'worker', max_retries: 0 } as const;
const running = spawn(agent, ['--persistent'], {
  env: { ...process.env, SIMPLETUNER_WORKER_TOKEN: made.token },
  stdio: ['ignore', 2, 2],
});
const gone = once(running, 'exit');
let completed: Job;
try {
  const submitted = good(await client.POST('/api/queue/submit', { body: job }));
  assert.ok('job_id' in submitted, 'a job, and no preview');
  completed = await follow(submitted.job_id);
  assert.equal(completed.status, 'completed', JSON.stringify(completed));
  assert.equal(completed.worker_id, made.worker_id);
  const log = good(await client.GET('/api/queue/{id}/logs/lines', { params: { path: { id: completed.job_id } } }));
  assert.ok(log.total > 0 && log.lines[0]?.text);
} finally {
  running.kill();
}
await gone;

const hopeless = { ...job, worker_labels: { gpu_type: 'none-has-it' } };
const waits = good(await client.POST('/api/queue/submit', { body: hopeless }));
assert.ok('job_id' in waits && waits.status === 'queued', JSON.stringify(waits));
good(await client.POST('/api/queue/{id}/cancel', { params: { path: { id: waits.job_id } } }));
assert.equal((await follow(waits.job_id)).status, 'cancelled');
console.log(JSON.stringify({ completed: completed.job_id, cancelled: waits.job_id }));
