// A fleet on a weekday: some jobs run, some are queued, and some things are broken. All
// data arrives over the agents' API.
import type { Server } from './fixtures';
import { Host, sample } from './host';
import { makeWorker, submit } from './steps';

export interface DemoFleet {
  hosts: Host[];
  running: string;
  completed: string;
  failed: string;
  waiting: string;
  worker: string;
  close(): void;
}

/** The paths of all pages by name. */
export const PAGES: Record<string, (fleet: DemoFleet) => string> = {
  overview: () => '/',
  jobs: () => '/jobs',
  'jobs-none': () => '/jobs?status=cancelled',
  running: ({ running }) => `/jobs/${running}`,
  completed: ({ completed }) => `/jobs/${completed}`,
  failed: ({ failed }) => `/jobs/${failed}`,
  waiting: ({ waiting }) => `/jobs/${waiting}`,
  samples: ({ completed }) => `/jobs/${completed}?show=samples`,
  files: ({ completed }) => `/jobs/${completed}?show=files`,
  configuration: ({ completed }) => `/jobs/${completed}/configuration`,
  events: ({ failed }) => `/jobs/${failed}/events`,
  cancel: ({ waiting }) => `/jobs/${waiting}/cancel`,
  log: ({ running }) => `/jobs/${running}/log`,
  train: () => '/train',
  configs: () => '/configs',
  config: () => '/configs/digits',
  workers: () => '/admin/workers',
  'workers-none': () => '/admin/workers?q=nowhere',
  worker: ({ worker }) => `/admin/workers/${worker}`,
  'worker-gpus': ({ worker }) => `/admin/workers/${worker}?show=gpus`,
  'worker-jobs': ({ worker }) => `/admin/workers/${worker}/jobs`,
  'worker-events': ({ worker }) => `/admin/workers/${worker}/events`,
  'worker-edit': ({ worker }) => `/admin/workers/${worker}/edit`,
  'worker-new': () => '/admin/workers/new',
  'worker-delete': ({ worker }) => `/admin/workers/${worker}/delete`,
  'workers-drain': ({ hosts }) => `/admin/workers/bulk?action=drain${hosts.map(({ id }) => `&id=${id}`).join('')}`,
  'jobs-cancel': ({ running, waiting, failed }) => `/jobs/bulk?action=cancel&id=${running}&id=${waiting}&id=${failed}`,
  fleet: () => '/fleet',
  gpus: () => '/fleet/gpus',
  secrets: () => '/secrets',
  users: () => '/admin/users',
  account: () => '/account',
  usage: () => '/usage',
  shares: () => '/shares',
  team: () => '/shares/vision',
  'team-new': () => '/shares/new',
  'team-member': () => '/shares/vision/admin',
  audit: () => '/admin/audit',
  'audit-none': () => '/admin/audit?target=nothing',
  'audit-verify': () => '/admin/audit/verify',
  system: () => '/admin/system',
  search: () => '/search?q=digits',
  preferences: () => '/preferences',
  'config-new': () => '/configs/new',
  'config-edit': () => '/configs/digits/edit',
  'config-delete': () => '/configs/digits/delete',
  'jobs-groups': () => '/jobs?group=config',
  'jobs-view': () => '/jobs/view?columns=status,metric.loss',
  'jobs-logs': () => '/jobs/logs?q=warning',
  charts: ({ running }) => `/jobs/${running}?show=charts`,
  'job-system': ({ running }) => `/jobs/${running}?show=system`,
  fork: ({ completed }) => `/jobs/${completed}/fork`,
  compare: ({ running, completed, failed }) => `/jobs/compare?id=${completed}&id=${running}&id=${failed}`,
  vote: ({ running, completed }) => `/jobs/compare/vote?id=${completed}&id=${running}`,
};

/** A falling loss with reproducible noise. */
export const loss = (step: number) => 0.12 + 1.6 * Math.exp(-step / 260) + 0.05 * Math.sin(step * 1.7) * Math.exp(-step / 900);

export function points(from: number, to: number, total: number, seconds: number): object[] {
  const all = [];
  for (let step = from; step <= to; step += 5) {
    const at = new Date(Date.now() - (to - step) * seconds * 1_000).toISOString();
    all.push({
      step, total_steps: total, at, epoch: step / 120, loss: loss(step), learning_rate: 1e-4 * Math.min(1, step / 50) * (1 - step / (total * 1.1)),
      eta_seconds: (total - step) * seconds, metrics: { grad_norm: 0.4 + Math.exp(-step / 300) + 0.1 * Math.sin(step), 'val/clip_score': 0.2 + 0.1 * (1 - Math.exp(-step / 400)) },
    });
  }
  return all;
}

/** Sends an hour of GPU readings; the GPUs are busy for the last three quarters. */
async function telemetry(host: Host, load: number): Promise<void> {
  const wave = (gpu: number, ago: number) => {
    const busy = ago < 45 * 60 ? load : load * 0.1;
    return Math.max(0, Math.min(100, busy + 6 * Math.sin(ago / 180 + gpu)));
  };
  const ages = Array.from({ length: 238 }, (_, n) => (238 - n) * 15);
  await host.sendPastReadings((ago) => host.gpus.map((uuid, gpu) => ({
    uuid, utilization_percent: wave(gpu, ago), memory_used_gb: 4 + wave(gpu, ago) * 0.7, temperature_celsius: 34 + wave(gpu, ago) * 0.4,
    power_watts: 70 + wave(gpu, ago) * 3.1, power_limit_watts: 400, clock_mhz: 1410, memory_clock_mhz: 1593,
  })), ages);
}

/** Creates the fleet on a server. */
export async function demoFleet(server: Server): Promise<DemoFleet> {
  for (const [name, settings] of Object.entries({ vision: { weight: 3, guaranteed_gpus: 20 }, speech: { max_gpus: 4, max_gpu_hours: 500 } })) {
    await server.api('/api/teams', { method: 'POST', body: JSON.stringify({ name, description: `Models of ${name}`, settings }) });
  }
  await server.api('/api/teams/vision/members/admin', { method: 'PUT', body: '{}' });
  const atlas = await Host.connect(server, 'atlas', { gpus: 8, model: 'NVIDIA H100 80GB HBM3', labels: { site: 'vienna', team: 'vision' } });
  const completed = await submit(server, 'digits');
  const first = await atlas.run();
  await atlas.log(first, logText(0, 1_000));
  await atlas.progress(first, points(0, 1_000, 1_000, 0.4));
  for (const step of [0, 500, 1_000]) {
    for (const prompt of [0, 1]) await atlas.file(first, `validation_images/step_${step}_${prompt}.png`, 'sample', sample(step / 1_000, prompt + 1));
  }
  await atlas.checkpoint(first, 500);
  await atlas.file(first, 'model.safetensors', 'final', Buffer.alloc(40_000, 7));
  await atlas.report(first, 'completed');

  const failed = await submit(server, 'digits-quick');
  const second = await atlas.run();
  await atlas.log(second, 'Traceback (most recent call last):\n  File "train.py", line 88, in step\ntorch.OutOfMemoryError: CUDA out of memory\n');
  await atlas.report(second, 'failed', { error: 'the trainer ended with status 1: CUDA out of memory', exit_code: 1 });

  const running = await submit(server, 'digits');
  const third = await atlas.run();
  await atlas.log(third, logText(0, 640));
  await atlas.progress(third, points(0, 640, 2_000, 1.1));
  for (const step of [0, 200, 400, 600]) {
    for (const prompt of [0, 1]) await atlas.file(third, `validation_images/step_${step}_${prompt}.png`, 'sample', sample(step / 800, prompt + 1));
  }
  await telemetry(atlas, 88);

  const borea = await Host.connect(server, 'borea', { gpus: 2, model: 'NVIDIA GeForce RTX 4090', vram: 24, labels: { site: 'graz' } });
  await telemetry(borea, 4);
  const ceres = await Host.connect(server, 'ceres', { gpus: 4, labels: { site: 'graz', team: 'nlp' } });
  await ceres.sendReadings([
    { uuid: ceres.gpus[0], temperature_celsius: 44, utilization_percent: 0, memory_used_gb: 0.4 },
    { uuid: ceres.gpus[1], unavailable: { reason: 'quarantined', detail: 'XID 79: the GPU has fallen off the bus' } },
    { uuid: ceres.gpus[2], temperature_celsius: 61, utilization_percent: 97, unavailable: { reason: 'in_use', detail: 'process 4711 (python)' } },
    { uuid: ceres.gpus[3], temperature_celsius: 41, utilization_percent: 0 },
  ]);
  await server.api(`/api/admin/workers/${ceres.id}/drain`, { method: 'POST', body: JSON.stringify({ reason: 'riser cable is replaced' }) });
  await makeWorker(server, 'delos');
  const body = JSON.stringify({ config_name: 'digits', target: 'worker', worker_labels: { team: 'audio' }, gpu_count: 16 });
  const waiting = (await (await server.api('/api/queue/submit', { method: 'POST', body })).json()).job_id;
  const hosts = [atlas, borea, ceres];
  return { hosts, running, completed, failed, waiting, worker: atlas.id, close: () => hosts.forEach((host) => host.close()) };
}

export function logText(from: number, to: number): string {
  let text = '';
  for (let step = from; step <= to; step += 10) {
    text += `\u001b[2m2026-03-14 09:${String(Math.floor(step / 60) % 60).padStart(2, '0')}:${String(step % 60).padStart(2, '0')}\u001b[0m `
      + `\u001b[32mINFO\u001b[0m step ${step} loss ${loss(step).toFixed(4)}\n`;
    if (step % 200 === 0) text += `\u001b[33mWARNING\u001b[0m validation at step ${step}\n`;
  }
  return text;
}
