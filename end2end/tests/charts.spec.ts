// Charts of trainings, of their GPUs, of workers, and of the whole fleet.
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { startJob } from '../host';
import { makeWorker, registerGpus, sendAsAgent, signIn } from '../steps';
import type { Page } from '@playwright/test';

/** Sends readings of the last hour, one per minute, with a gap of ten minutes. */
async function reportHour(server: Server, token: string, count: number, uuid = (index: number) => `GPU-${index}`): Promise<void> {
  const now = Date.now();
  const readingsAt = (minutesAgo: number) => {
    const phase = minutesAgo / 7;
    const gpu = (index: number) => ({
      uuid: uuid(index),
      utilization_percent: 60 + 35 * Math.sin(phase + index * 2),
      memory_used_gb: 40 + 12 * index + 3 * Math.cos(phase),
      temperature_celsius: 55 + 12 * Math.sin(phase + index) + index,
      power_watts: 250 + 120 * Math.sin(phase + index * 2),
      power_limit_watts: 400,
    });
    return { at: new Date(now - minutesAgo * 60_000).toISOString(), gpus: Array.from({ length: count }, (_, index) => gpu(index)) };
  };
  const minutes = Array.from({ length: 58 }, (_, index) => 58 - index).filter((minutesAgo) => minutesAgo < 25 || minutesAgo > 35);
  // The last reading of a heartbeat is the current one.
  for (let first = 0; first < minutes.length; first += 11) {
    const telemetry = [...minutes.slice(first, first + 11), 0].map(readingsAt);
    await sendAsAgent(server, token, 'heartbeat', { telemetry });
  }
}

/** Returns the points of a training with this many steps, one per second, that ends now. */
function training(steps: number): object[] {
  const startedAt = Date.now() - steps * 1_000;
  const noise = (step: number) => Math.sin(step * 12.9898) * 0.5;
  return Array.from({ length: steps }, (_, step) => ({
    step,
    total_steps: steps * 2,
    at: new Date(startedAt + step * 1_000).toISOString(),
    loss: step === 137 ? 9 : 2 * Math.exp(-step / 120) + 0.1 + Math.abs(noise(step)) * 0.2,
    learning_rate: 0.001 * (1 - step / steps / 2),
    epoch: Math.floor(step / 60),
    metrics: { grad_norm: 1 + noise(step), '<b>accuracy</b>\u202e': 1 - Math.exp(-step / 90) },
  }));
}

async function expectFits(page: Page, name: string): Promise<void> {
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await picture(page, `${name}-${scheme}-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth), `${name} fits`).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

const chart = (page: Page, name: string | RegExp) => page.getByRole('img', { name });

test('a worker shows GPU charts of the last hour and day', async ({ page, server }) => {
  test.setTimeout(120_000);
  await signIn(page, server);
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await page.goto(`/admin/workers/${id}?show=gpus`);
  await expect(page.getByText('No GPU readings in this period.')).toBeVisible();
  await registerGpus(server, token, 3);
  await reportHour(server, token, 3);
  await page.goto(`/admin/workers/${id}?show=gpus`);
  for (const name of ['Utilization', 'Memory', 'Temperature', 'Power']) {
    await expect(chart(page, new RegExp(`^${name}: GPU 0 first`)).first()).toBeVisible();
  }
  // Ten minutes without readings are a gap, after which each line starts again.
  const lines = await chart(page, /^Utilization: GPU 0/).first().locator('path.curve').evaluateAll((paths) => paths.map((path) => path.getAttribute('d')));
  expect(lines.map((line) => line?.split('M').length)).toEqual([3, 3, 3]);
  await expectFits(page, 'worker-charts');
  await page.getByText('Data table: Power').click();
  await expect(page.getByRole('table', { name: 'Power' }).getByRole('row')).toHaveCount(17);
  await expect(page.getByRole('table', { name: 'Power' })).toContainText('GPU 2');
  await page.getByRole('navigation', { name: 'Range' }).getByRole('link', { name: 'Last day' }).click();
  await expect(page).toHaveURL(/\?show=gpus&range=day/);
  await expect(page.getByRole('link', { name: 'Last day' })).toHaveAttribute('aria-current', 'true');
  await expect(chart(page, /^Utilization: GPU 0 first/).first()).toBeVisible();
  await page.goBack();
  await expect(page.getByRole('link', { name: 'Last hour' })).toHaveAttribute('aria-current', 'true');
});

test('each metric of a trainer has a chart, and so have its GPUs', async ({ page, server }) => {
  test.setTimeout(120_000);
  await signIn(page, server);
  const { host, offer } = await startJob(server, { gpus: 2 });
  await host.progress(offer, training(300));
  await reportHour(server, host.token, 2, (index) => host.gpus[index]!);
  await page.goto(`/jobs/${offer.job_id}`);
  const main = page.getByRole('region', { name: 'Metrics', exact: true });
  await expect(main.getByRole('figure').locator('.chart-title')).toHaveText(['Loss', 'Learning rate', /^<b>accuracy<\/b>/, 'grad_norm']);
  await main.getByRole('link', { name: 'All charts' }).click();
  await expect(page).toHaveURL(/show=charts/);
  for (const name of ['Loss', 'Learning rate', 'Epoch', 'Steps per second', 'grad_norm', '<b>accuracy</b>']) {
    await expect(chart(page, name).first()).toBeVisible();
  }
  // A single spike among 300 points is drawn.
  await expect(chart(page, /^Loss: first \S+, last \S+, lowest \S+, highest \S+/).first()).toBeVisible();
  const metrics = await (await server.api(`/api/queue/${offer.job_id}/metrics`)).json();
  expect(Math.max(...metrics.metrics[0].values)).toBe(9);
  await expectFits(page, 'job-charts');
  const scale = page.getByRole('navigation', { name: 'Vertical scale' });
  await scale.getByRole('link', { name: 'Log', exact: true }).click();
  await expect(page).toHaveURL(/scale=log/);
  await page.getByRole('navigation', { name: 'Horizontal axis' }).getByRole('link', { name: 'Time' }).click();
  await expect(page).toHaveURL(/scale=log.*x=time|x=time.*scale=log/);
  await expect(chart(page, /^Loss/).first()).toContainText('min');
  await picture(page, 'job-charts-log-time');
  await page.reload();
  await expect(scale.getByRole('link', { name: 'Log', exact: true })).toHaveAttribute('aria-current', 'true');
  await page.getByRole('navigation', { name: 'Job views' }).getByRole('link', { name: 'System' }).click();
  await expect(page).toHaveURL(/show=system/);
  await expect(page.getByRole('heading', { name: 'GPU metrics' })).toBeVisible();
  await expect(chart(page, /^Utilization: /).first()).toBeVisible();
  await expectFits(page, 'job-system');
  host.close();
});

test('each GPU shows its last hour, and the overview that of the fleet', async ({ page, server }) => {
  test.setTimeout(120_000);
  await signIn(page, server);
  await expect(page.getByRole('heading', { name: 'GPU utilization' })).toHaveCount(0);
  const { token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 4);
  await reportHour(server, token, 3);
  await page.goto('/fleet/gpus');
  const sparks = page.getByRole('img', { name: /GPU \d.*: first/ });
  await expect(sparks).toHaveCount(3);
  await expectFits(page, 'gpus-sparks');
  await page.getByRole('navigation', { name: 'Range' }).getByRole('link', { name: 'Last day' }).click();
  await page.getByRole('link', { name: 'Tables' }).click();
  await expect(page).toHaveURL(/view=table&range=day/);
  await expect(sparks).toHaveCount(3);
  await picture(page, 'gpus-sparks-table');
  await page.goto('/');
  await expect(chart(page, /^0 of 4 GPUs allocated: Utilization \(3 of 4\) first/).first()).toBeVisible();
  await expectFits(page, 'overview-chart');
});

test('GPU history survives a restart of the server', async ({ page, server }) => {
  await signIn(page, server);
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 1);
  await reportHour(server, token, 1);
  await page.goto('about:blank'); // an open page would log errors
  await server.restart();
  await page.goto(`/admin/workers/${id}?show=gpus`);
  await expect(chart(page, /^Utilization: first/).first()).toBeVisible();
});

test('a completed job with a NaN loss says so', async ({ page, server }) => {
  const { host, offer } = await startJob(server);
  const at = new Date().toISOString();
  const point = (step: number, more: object) => ({ step, total_steps: 1_200, at, learning_rate: 0.001, ...more });
  await host.progress(offer, [point(1, { loss: 0.5 }), point(600, { loss: 0.4 }), point(1_100, { loss_is_nan: true }), point(1_200, { loss_is_nan: true })]);
  await host.report(offer, 'completed');
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}`);
  const since = 'Loss has been NaN since step 1,100.';
  await expect(page.locator('.job-note')).toHaveText(/^Training completed after [^.]+\. Loss has been NaN since step 1,100\.$/);
  await expect(page.locator('.readings div').filter({ has: page.getByText('Loss', { exact: true }) })).toHaveText(/^Loss\s*NaN$/);
  await expect(page.getByRole('region', { name: 'Metrics', exact: true })).toContainText(since);
  await expectAccessible(page);
  host.close();
});
