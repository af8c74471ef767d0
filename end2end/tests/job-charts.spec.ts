// The charts of a job as its address describes them: what is visible, how it is smoothed, and which values are not drawn.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { Host, startJob } from '../host';
import { live, signIn } from '../steps';
import type { Page } from '@playwright/test';

/** The points of a training, one per second; values of `nan` are not finite. */
function training(steps: number, nan: (step: number) => boolean = () => false): object[] {
  const startedAt = Date.now() - steps * 1_000;
  return Array.from({ length: steps }, (_, step) => ({
    step,
    at: new Date(startedAt + step * 1_000).toISOString(),
    epoch: step / 100,
    ...(nan(step) ? { loss_is_nan: true } : { loss: 2 * Math.exp(-step / 300) + 0.1 + Math.abs(Math.sin(step * 12.9898)) * 0.2 }),
    metrics: { grad_norm: Math.sin(step / 50), 'val/loss': 1 + step / steps },
  }));
}

const scripts = () => test.info().project.use.javaScriptEnabled ?? true;

const figure = (page: Page, title: string) => page.getByRole('figure').filter({ has: page.locator('.chart-title', { hasText: new RegExp(`^${title}$`) }) });

test('an address shows the same part of the charts to everybody', async ({ page, server }) => {
  test.setTimeout(90_000);
  await signIn(page, server);
  const { host, offer } = await startJob(server);
  await host.longProgress(offer, training(3_000));
  const all = `/jobs/${offer.job_id}?show=charts`;
  await page.goto(`${all}&zoom=1000~1200&smooth=0.5&at=1100&y=grad_norm~-2~2`);
  const loss = figure(page, 'Loss');
  await expect(page.locator('.chart-zoom')).toHaveText('Steps 1,000 to 1,200');
  await expect(loss.locator('.chart-at')).toHaveText('Step 1,100');
  await expect(loss.locator('.panel-note')).toHaveText('smoothed, 0.5');
  await expect(page.getByRole('slider', { name: 'Smoothing' })).toHaveValue('0.5');
  // Within the part, all points are drawn; of the whole, only some are.
  const path = await loss.locator('.chart-large path.curve').last().getAttribute('d');
  expect(path!.split('L').length).toBeGreaterThan(200);
  await expect(loss.locator('.chart-large .tick-text').filter({ hasText: /^1,100$/ })).toHaveCount(1);
  await expect(figure(page, 'grad_norm').locator('.tick-text').filter({ hasText: /^2$/ })).toHaveCount(1);
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await picture(page, `charts-zoomed-${scheme}-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize({ width: 1280, height: 900 });

  await page.getByRole('link', { name: 'Reset zoom' }).click();
  await expect(page).toHaveURL((url) => !url.searchParams.has('zoom') && url.searchParams.get('smooth') === '0.5');
  await expect(page.locator('.chart-zoom')).toHaveCount(0);

  if (scripts()) await live(page);
  const slider = page.getByRole('slider', { name: 'Smoothing' });
  await slider.fill('0');
  if (!scripts()) await page.getByRole('button', { name: 'Apply' }).first().click();
  await expect(page).toHaveURL((url) => url.searchParams.get('smooth') === '0' && url.searchParams.get('y') === 'grad_norm~-2~2');
  await expect(page.locator('.chart-smoothing output')).toHaveText('off');
  await expect(figure(page, 'Loss').locator('.curve-behind')).toHaveCount(0);

  // The menu of a chart has its y axis, and its data.
  const menu = figure(page, 'grad_norm').locator('.row-menu');
  await menu.locator('summary').click();
  await expect(menu.getByLabel('Highest')).toHaveValue('2');
  await menu.getByLabel('Highest').fill('50');
  await expectAccessible(page);
  await picture(page, 'charts-menu');
  await menu.getByRole('button', { name: 'Apply' }).click();
  // The form of the page without scripts adds its own fields to the address.
  await expect(page).toHaveURL((url) => (scripts() ? url.searchParams.getAll('y').join() === 'grad_norm~-2~50' : url.searchParams.get('y_high') === '50'));
  await expect(figure(page, 'grad_norm').locator('.tick-text').filter({ hasText: /^40$/ })).toHaveCount(1);
  const href = await figure(page, 'val/loss').locator('a[download]').getAttribute('href');
  const csv = await (await page.request.get(href!)).text();
  expect(csv.split('\r\n').slice(0, 2)).toEqual([expect.stringMatching(/^step,at,val\/loss$/), expect.stringMatching(/^0,\S+Z,1$/)]);
  if (!scripts()) await expect(page.getByText('Picture (SVG)').locator('visible=true')).toHaveCount(0);

  await page.goto(`${all}&x=epoch&scale=log&xscale=log`);
  await expect(figure(page, 'Loss').locator('.chart-large .tick-text').filter({ hasText: /^10$/ })).toHaveCount(1);
  await expect(figure(page, 'grad_norm').locator('.chart-note')).toHaveText('Values that are not above 0 are left out.');
  await picture(page, 'charts-log');
  host.close();
});

test('values that are not numbers interrupt the line and are marked', async ({ page, server }) => {
  await signIn(page, server);
  const { host, offer } = await startJob(server);
  await host.progress(offer, training(300, (step) => (step >= 100 && step < 103) || step === 200));
  await page.goto(`/jobs/${offer.job_id}?show=charts`);
  const loss = figure(page, 'Loss');
  await expect(loss.locator('.chart-note')).toHaveText('4 values are not numbers (marked in the chart).');
  const marks = loss.locator('.chart-large .gap-mark title');
  await expect(marks).toHaveText(['3 values are not numbers: Step 100 to 102', '1 value is not a number: Step 200']);
  const path = await loss.locator('.chart-large path.curve').last().getAttribute('d');
  expect(path!.split('M').length - 1, 'three pieces').toBe(3);
  await expectAccessible(page);
  await picture(page, 'charts-gaps');
  host.close();
});

test('attempts of a job are drawn together', async ({ page, server }) => {
  test.setTimeout(90_000);
  await signIn(page, server);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const body = JSON.stringify({ config_name: 'digits', target: 'worker', retry_on_failure: true, max_retries: 3 });
  expect((await server.api('/api/queue/submit', { method: 'POST', body })).status).toBe(201);
  const first = await host.run();
  await host.progress(first, training(200));
  await host.report(first, 'failed', { error: 'CUDA out of memory' });
  const second = await host.run();
  await host.progress(second, training(100));
  await page.goto(`/jobs/${second.job_id}?show=charts&smooth=0`);
  await page.getByRole('navigation', { name: 'Attempts' }).getByRole('link', { name: 'All attempts' }).click();
  await expect(page).toHaveURL((url) => url.searchParams.get('attempts') === 'all' && url.searchParams.get('smooth') === '0');
  await expect(figure(page, 'Loss').locator('.chart-legend bdi')).toHaveText(['Attempt 1', 'Attempt 2']);
  await expect(figure(page, 'Loss').locator('.chart-large path.curve')).toHaveCount(2);
  await picture(page, 'charts-attempts');
  await expectAccessible(page);
  await page.getByRole('navigation', { name: 'Attempts' }).getByRole('link', { name: 'Attempt 1' }).click();
  await expect(figure(page, 'Loss').locator('.chart-legend')).toHaveCount(0);
  host.close();
});

test('GPU readings have the axis of the metrics', async ({ page, server }) => {
  test.setTimeout(60_000);
  await signIn(page, server);
  const { host, offer } = await startJob(server, { gpus: 2 });
  const now = Date.now();
  const points = Array.from({ length: 121 }, (_, index) => ({
    step: index * 10, at: new Date(now + (index - 60) * 1_000).toISOString(), loss: 2 - index / 100, metrics: { grad_norm: Math.sin(index / 9) },
  }));
  await host.progress(offer, points);
  await host.sendReadings(host.gpus.map((uuid, index) => ({ uuid, utilization_percent: 70 + index, memory_used_gb: 40, temperature_celsius: 61, power_watts: 300 })));
  const readings = page.getByRole('region', { name: 'GPU metrics' });
  const ticks = async (title: string) => (await figure(page, title).locator('.tick-text[text-anchor=middle]').allTextContents()).join();
  for (const axis of ['', '&x=time', '&zoom=200~900']) {
    await page.goto(`/jobs/${offer.job_id}?show=charts${axis}`);
    await expect(readings.getByRole('figure').locator('.chart-title')).toHaveText(['Utilization', 'Memory', 'Temperature', 'Power']);
    await expect(readings.getByRole('img', { name: /^Utilization: GPU 0 first 70.*; GPU 1 first 71/ }).first()).toBeVisible();
    expect(await ticks('Utilization')).toBe(await ticks('grad_norm'));
  }
  await expectAccessible(page);
  await picture(page, 'charts-gpus');
  host.close();
});
