// A busy fleet for work on pages: six hosts, two hundred jobs in all states, and users. It runs until Ctrl-C.
import { setTimeout as sleep } from 'node:timers/promises';
import { demoFleet, logText, points } from '../demo-fleet';
import { expect, test, type Server } from '../fixtures';
import { Host, type Offer } from '../host';
import { PASSWORD } from '../steps';

const USERS = { ada: 'lead', bob: 'researcher', cho: 'researcher', dee: 'viewer' };
const CONFIGS = ['digits', 'digits-quick'];
const LABELS = [{}, {}, { team: 'vision' }, { team: 'nlp' }, { site: 'graz' }];
/** The number of jobs that end before the fleet slows down to a realistic speed. */
const HISTORY = 150;
const JOBS = 200;

const FAILURES = [
  ['Traceback (most recent call last):\n  File "train.py", line 88, in step\ntorch.OutOfMemoryError: CUDA out of memory\n', 'the trainer ended with status 1: CUDA out of memory'],
  ['Traceback (most recent call last):\n  File "data.py", line 12, in load\nFileNotFoundError: /data/faces\n', 'the trainer ended with status 1: FileNotFoundError'],
] as const;

/** Returns pseudo-random numbers from 0 to 1, the same in each demo. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

async function post(server: Server, path: string, body: object, token = server.adminToken): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(response.ok, `${path}: ${await response.clone().text()}`).toBe(true);
  return response.json();
}

/** Creates the users and returns API tokens of those with permission to submit. */
async function createUsers(server: Server): Promise<string[]> {
  const tokens = [];
  for (const [name, role] of Object.entries(USERS)) {
    const { id } = await post(server, '/api/admin/users', { name, role, password: PASSWORD });
    if (role !== 'viewer') tokens.push((await post(server, `/api/admin/users/${id}/tokens`, { name: 'demo' })).secret!);
  }
  return tokens;
}

/** Runs one job: immediately while the history is created, later at the speed of a short training. */
async function train(host: Host, offer: Offer, chance: () => number, isHistory: boolean): Promise<void> {
  await host.report(offer, 'starting');
  await host.report(offer, 'running');
  const total = 100 + 100 * Math.floor(chance() * 6);
  const failure = chance() < 0.15 ? FAILURES[Math.floor(chance() * FAILURES.length)]! : undefined;
  const end = failure ? Math.floor(total * chance()) : total;
  const step = isHistory ? Math.max(end, 10) : 10;
  let offset = 0;
  for (let at = 0; at < end; at += step) {
    const to = Math.min(at + step, end);
    await host.progress(offer, points(at, to, total, 1));
    offset = await host.log(offer, logText(at, to), offset);
    if (!isHistory) await sleep(2_000);
  }
  if (failure) await host.log(offer, failure[0], offset);
  await host.report(offer, failure ? 'failed' : 'completed', failure ? { error: failure[1], exit_code: 1 } : {});
}

/**
 * Accepts offers and runs their jobs. An error means that the job was cancelled or lost; the
 * host continues with the next one.
 */
async function work(host: Host, chance: () => number, ended: { count: number }): Promise<never> {
  for (;;) {
    const offer = host.nextOffer();
    if (offer) {
      await train(host, offer, chance, ended.count < HISTORY).catch(() => host.report(offer, 'cancelled').catch(() => {}));
      ended.count += 1;
    } else {
      await sleep(100);
    }
  }
}

/** Heartbeats; of a host that drains, without readings, so that its GPUs stay as they were reported. */
async function report(host: Host, chance: () => number, isDraining = false): Promise<never> {
  for (;;) {
    const reading = (uuid: string) => {
      const load = 60 + 40 * chance();
      return { uuid, utilization_percent: load, memory_used_gb: load * 0.6, temperature_celsius: 40 + load * 0.4, power_watts: load * 4, power_limit_watts: 450 };
    };
    await host.sendReadings(isDraining ? [] : host.gpus.map(reading));
    await sleep(10_000);
  }
}

test('demo', async ({ server }) => {
  const chance = random(7);
  const tokens = await createUsers(server);
  const fleet = await demoFleet(server);
  const more = [
    await Host.connect(server, 'eos', { gpus: 8, model: 'NVIDIA A100-SXM4-80GB', labels: { site: 'vienna', team: 'nlp' } }),
    await Host.connect(server, 'faun', { gpus: 1, model: 'NVIDIA L4', vram: 24, labels: { site: 'graz' } }),
    await Host.connect(server, 'gaia', { gpus: 4, model: 'NVIDIA H200', vram: 140, labels: { team: 'vision' } }),
  ];
  const ended = { count: 0 };
  const busy = [...more, fleet.hosts[1]!];
  void Promise.all([
    ...busy.map((host) => work(host, chance, ended)),
    ...[...busy, fleet.hosts[0]!].map((host) => report(host, chance)),
    report(fleet.hosts[2]!, chance, true),
  ]);
  const jobs: string[] = [];
  for (let n = 0; n < JOBS; n += 1) {
    const body = {
      config_name: CONFIGS[n % CONFIGS.length], target: 'worker', priority: Math.floor(chance() * 3) * 5,
      worker_labels: LABELS[Math.floor(chance() * LABELS.length)], retry_on_failure: chance() < 0.1,
    };
    jobs.push((await post(server, '/api/queue/submit', body, tokens[n % tokens.length])).job_id!);
    if (n % 12 === 5) await post(server, `/api/queue/${jobs[n]}/cancel`, {}).catch(() => {}); // the job may have ended
  }
  console.log(`\n  ${server.url}\n  password of the admin: ${server.adminToken}\n  users: ${Object.keys(USERS).join(', ')}, password ${PASSWORD}\n`);
  await new Promise(() => {});
});
