// Live updates of hydrated pages.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures';
import { startJob } from '../host';
import { live, makeWorker, registerGpus, signIn, submit, reportReadings } from '../steps';

test('lists update without a reload', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  await makeWorker(server, 'came-later');
  await expect(page.getByRole('link', { name: 'came-later' })).toBeVisible();
  await page.goto('/jobs');
  await live(page);
  await submit(server, 'digits');
  await expect(page.getByRole('row').filter({ hasText: 'digits' })).toContainText('Queued');
});

test('GPU readings update without a reload', async ({ page, server }) => {
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 1);
  await reportReadings(server, token, [{ uuid: 'GPU-0', temperature_celsius: 40 }]);
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}?show=gpus`);
  await live(page);
  await expect(page.getByRole('cell', { name: /^40\s°C$/ })).toBeVisible();
  await reportReadings(server, token, [{ uuid: 'GPU-0', temperature_celsius: 71 }]);
  await expect(page.getByRole('cell', { name: /^71\s°C$/ })).toBeVisible();
  await reportReadings(server, token, [{ uuid: 'GPU-0', unavailable: { reason: 'quarantined', detail: 'XID 79' } }]);
  await expect(page.getByText('Quarantined')).toBeVisible();
});

test('a worker’s status timeline updates without a reload, and open details stay open', async ({ page, server }) => {
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 1);
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  await live(page);
  const day = page.locator('.last-day');
  await day.locator('summary').click();
  await server.api(`/api/admin/workers/${id}/drain`, { method: 'POST' });
  await expect(day.locator('rect.is-draining')).toHaveCount(1);
  await expect(day.getByRole('listitem').first()).toContainText('Draining');
});

test('tiles show readings without a reload', async ({ page, server }) => {
  const { token } = await makeWorker(server, 'rack-1');
  await registerGpus(server, token, 1);
  await signIn(page, server);
  await page.goto('/fleet/gpus');
  await live(page);
  await reportReadings(server, token, [{ uuid: 'GPU-0', utilization_percent: 42 }]);
  await expect(page.getByText('42%')).toBeVisible();
});

test('a page reconnects after a restart and a crash of the server', async ({ page, server, consoleErrors }) => {
  test.setTimeout(60_000);
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  for (const [stop, name] of [['restart', 'after-the-restart'], ['crash', 'after-the-crash']] as const) {
    await server[stop]();
    await makeWorker(server, name);
    await expect(page.getByRole('link', { name })).toBeVisible({ timeout: 20_000 });
  }
  // While the server is down, the browser logs refused connections.
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(line)));
});

test('ages are shown in words, and exactly', async ({ page, server }) => {
  await makeWorker(server, 'gpu-1');
  await submit(server, 'digits');
  await signIn(page, server);
  await page.goto('/jobs');
  const age = page.locator('time').first();
  await expect(age).toHaveText(/ago|now/);
  await expect(age).toHaveAttribute('datetime', /^\d{4}-\d\d-\d\dT/);
});

/** Returns a function that counts how often the page has opened the event stream. */
function countStreams(page: Page): () => number {
  let count = 0;
  page.on('request', (request) => { if (request.url().includes('/api/events')) count += 1; });
  return () => count;
}

/** Changes the visibility of a page, as switching tabs does. */
async function setVisibility(page: Page, visibility: 'visible' | 'hidden'): Promise<void> {
  await page.evaluate((state) => {
    Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, visibility);
}

test('each visible tab updates independently, also when another is closed', async ({ page, context, server }) => {
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  const second = await context.newPage();
  await second.goto('/admin/workers');
  await live(second);
  await makeWorker(server, 'seen-by-both');
  for (const tab of [page, second]) await expect(tab.getByRole('link', { name: 'seen-by-both' })).toBeVisible();
  await page.close();
  await makeWorker(server, 'after-the-first-was-closed');
  await expect(second.getByRole('link', { name: 'after-the-first-was-closed' })).toBeVisible();
});

test('a hidden tab has no stream, and is up to date when it is visible again', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  const opened = countStreams(page);
  const closed = page.waitForEvent('requestfailed', (request) => request.url().includes('/api/events'));
  await setVisibility(page, 'hidden');
  await closed;
  await makeWorker(server, 'while-nobody-looked');
  await setVisibility(page, 'visible');
  await expect(page.getByRole('link', { name: 'while-nobody-looked' })).toBeVisible();
  expect(opened()).toBe(1);
});

test('rows under the pointer or focus stay in place, and a notice says that there are new ones', async ({ page, server }) => {
  await makeWorker(server, 'b');
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  const rows = page.getByRole('table').locator('tbody tr');
  await rows.first().hover();
  await makeWorker(server, 'a');
  await expect(page.getByRole('button', { name: 'Refresh order' })).toBeVisible();
  await expect(rows.first().getByRole('link', { name: 'b' })).toBeVisible();
  await expect(rows).toHaveCount(1);
  await page.getByRole('heading', { level: 1 }).hover();
  await expect(rows.first().getByRole('link', { name: 'a' })).toBeVisible();
  await expect(rows).toHaveCount(2);
  await page.keyboard.press('j');
  await expect(rows.first().getByRole('link', { name: 'a' })).toBeFocused();
  await makeWorker(server, '0');
  await page.getByRole('button', { name: 'Refresh order' }).press('Enter');
  await expect(rows.first().getByRole('link', { name: '0' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Refresh order' })).toHaveCount(0);
});

test('a rerendered row keeps the focus', async ({ page, server }) => {
  test.setTimeout(60_000); // the second attempt waits for the end of the back-off
  const { host, offer } = await startJob(server);
  await host.report(offer, 'requeue', { reason: 'the host restarts' });
  await host.run();
  await signIn(page, server);
  await page.goto('/jobs?status=running');
  await page.locator('tbody').getByRole('link').first().click();
  await live(page);
  const bar = page.locator('.lane-part[aria-label^=Running]:visible').last();
  await bar.focus();
  const before = await bar.getAttribute('aria-label');
  await expect(bar).not.toHaveAttribute('aria-label', before!, { timeout: 15_000 });
  await expect(bar).toBeFocused();
  host.close();
});

test('the page of a running job changes little and sends few requests', async ({ page, server }) => {
  test.setTimeout(90_000);
  const { host, offer } = await startJob(server);
  const train = (step: number) => {
    const metrics = { grad_norm: 1 / step, accuracy: step / 1_000 };
    return host.progress(offer, [{ step, total_steps: 1_000, at: new Date().toISOString(), loss: 1 + 1 / step, learning_rate: 0.001, epoch: 1, metrics }]);
  };
  for (let step = 1; step <= 100; step += 1) await train(step);
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}`);
  await live(page);
  await expect(page.getByRole('figure').first()).toBeVisible();
  let requests = 0;
  page.on('request', () => (requests += 1));
  await page.evaluate(() => {
    const counted = window as unknown as { changes: number };
    counted.changes = 0;
    const options = { subtree: true, childList: true, attributes: true, characterData: true };
    new MutationObserver((records) => (counted.changes += records.length)).observe(document, options);
  });
  const startedAt = Date.now();
  for (let step = 101; step <= 140; step += 1) {
    await train(step);
    await expect.poll(() => Date.now() - startedAt, { intervals: [50] }).toBeGreaterThan((step - 100) * 500);
  }
  const changes = await page.evaluate(() => (window as unknown as { changes: number }).changes);
  expect(requests).toBeGreaterThan(0);
  expect(requests).toBeLessThanOrEqual(5);
  expect(changes).toBeLessThanOrEqual(2_000);
  await expect(page.locator('.readings')).toContainText('140', { timeout: 15_000 });
  host.close();
});
