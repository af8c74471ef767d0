// Bulk actions on a list: select, confirm by name, perform, report, and undo. With and without JavaScript.
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host } from '../host';
import { waitForJob, live, makeWorker, signIn, signInAs, submit } from '../steps';
import type { Page } from '@playwright/test';

const HOSTILE = '<img src=x onerror=alert(1)>';

const scripts = () => test.info().project.use.javaScriptEnabled ?? true;

/** Opens a list, and with scripts waits until it is live. */
async function list(page: Page, path: string): Promise<void> {
  await page.goto(path);
  if (scripts()) await live(page);
}

const box = (page: Page, name: string) => page.getByRole('checkbox', { name: `Select ${name}`, exact: true });
const bar = (page: Page) => page.locator('.pick-offers');

async function draining(server: Server, id: string): Promise<boolean> {
  return (await (await server.api(`/api/admin/workers/${id}`)).json()).draining;
}

test('selected workers are listed before they drain, and Undo resumes them', async ({ page, server }) => {
  test.setTimeout(60_000); // each action loads a page
  const atlas = await Host.connect(server, 'atlas', { gpus: 1 });
  await submit(server, 'digits');
  await atlas.run();
  const { worker_id: borea } = await makeWorker(server, `borea ${HOSTILE}`);
  const { worker_id: ceres } = await makeWorker(server, 'ceres');
  await signIn(page, server);
  await list(page, '/admin/workers');
  await expect(bar(page)).toBeHidden();
  await box(page, 'atlas').check();
  await expect(bar(page)).toBeVisible();
  await box(page, `borea ${HOSTILE}`).check();
  if (scripts()) await expect(page.getByText('2 selected')).toBeVisible();
  for (const [width, height] of [[1280, 800], [380, 800]] as const) {
    await page.setViewportSize({ width, height });
    await picture(page, `workers-picked-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    await expectAccessible(page);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await bar(page).getByRole('button', { name: 'Drain' }).click();

  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Drain 2 workers');
  await expect(page.getByRole('row').filter({ hasText: 'atlas' })).toContainText('Finishes digits and accepts no new jobs');
  await expect(page.getByRole('row').filter({ hasText: HOSTILE })).toContainText('Offline; drains when reconnected');
  await expect(page.getByRole('main')).not.toContainText('ceres');
  expect(await draining(server, borea), 'opening the address changes nothing').toBe(false);
  await expectAccessible(page);
  for (const [width, height] of [[1280, 800], [380, 800]] as const) {
    await page.setViewportSize({ width, height });
    await picture(page, `workers-question-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByLabel('Reason').fill('new switch');
  await page.getByLabel('Deadline in minutes').fill('30');
  await page.getByRole('button', { name: 'Drain 2 workers' }).click();

  await expect(page).toHaveURL(`${server.url}/admin/workers`);
  await expect(page.locator('#content').getByText('2 workers are draining.')).toBeVisible();
  expect([await draining(server, atlas.id), await draining(server, borea), await draining(server, ceres)]).toEqual([true, true, false]);
  const worker = await (await server.api(`/api/admin/workers/${borea}`)).json();
  expect(worker.drain_reason).toBe('new switch');
  expect((Date.parse(worker.drain_deadline) - Date.now()) / 60_000).toBeCloseTo(30, 0);
  await picture(page, 'workers-drained');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(page.locator('#content').getByText('2 workers resumed.')).toBeVisible();
  expect([await draining(server, atlas.id), await draining(server, borea)]).toEqual([false, false]);
  atlas.close();
});

test('offline workers are deleted, and the list keeps its filter', async ({ page, server }) => {
  const connected = await Host.connect(server, 'gpu-here', { gpus: 1 });
  const { worker_id: deletedId } = await makeWorker(server, 'gpu-gone');
  await signIn(page, server);
  await list(page, '/admin/workers?q=gpu-');
  await box(page, 'gpu-here').check();
  await box(page, 'gpu-gone').check();
  await bar(page).getByRole('button', { name: 'Delete if offline' }).click();
  await expect(page.getByRole('row').filter({ hasText: 'gpu-here' })).toContainText('Skipped: not offline');
  await picture(page, 'workers-delete');
  await page.getByRole('button', { name: 'Delete 1 worker' }).click();
  await expect(page.locator('#content').getByText('1 worker deleted.')).toBeVisible();
  await expect(page).toHaveURL(`${server.url}/admin/workers?q=gpu-`);
  await expect(page.getByRole('button', { name: 'Undo' })).toHaveCount(0);
  expect((await server.api(`/api/admin/workers/${deletedId}`)).status).toBe(404);
  expect((await server.api(`/api/admin/workers/${connected.id}`)).status).toBe(200);
  connected.close();
});

test('items that changed meanwhile are listed with the reason', async ({ page, server }) => {
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await makeWorker(server, 'gpu-2');
  await signIn(page, server);
  await page.goto('/admin/workers');
  const ids = (await Promise.all((await page.locator('.pick').all()).map((pick) => pick.getAttribute('value')))).join('&id=');
  await page.goto(`/admin/workers/bulk?action=delete&id=${ids}`);
  const headers = { 'x-worker-token': token, 'content-type': 'application/json' };
  const registered = await fetch(`${server.url}/api/workers/register`, { method: 'POST', headers, body: JSON.stringify({ protocol: 1, persistent: true }) });
  expect(registered.status).toBe(200);
  await page.getByRole('button', { name: 'Delete 2 workers' }).click();
  const notice = page.locator('#content .notice');
  await expect(notice).toContainText('1 worker deleted.');
  await expect(notice).toContainText('gpu-1: The worker is connected.');
  await picture(page, 'workers-rejected');
  expect((await server.api(`/api/admin/workers/${id}`)).status).toBe(200);
});

test('several jobs are cancelled and retried at once', async ({ page, server }) => {
  const [first, second] = [await submit(server, 'digits'), await submit(server, 'digits-quick')];
  const third = await submit(server, 'digits');
  await signIn(page, server);
  await list(page, '/jobs');
  const row = (text: string) => page.getByRole('row').filter({ has: page.locator(`[href="/jobs/${text}"]`) });
  for (const job of [first, second]) await row(job).getByRole('checkbox').check();
  for (const [width, height] of [[1280, 800], [380, 800]] as const) {
    await page.setViewportSize({ width, height });
    await picture(page, `jobs-picked-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    await expectAccessible(page);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await bar(page).getByRole('button', { name: 'Cancel jobs' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Cancel 2 jobs');
  await expect(page.getByText('Removed from the queue')).toHaveCount(2);
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Cancel 2 jobs' }).click();
  await expect(page.locator('#content').getByText('2 jobs are being cancelled.')).toBeVisible();
  for (const job of [first, second]) await waitForJob(server, job, 'cancelled');
  await waitForJob(server, third, 'queued');

  for (const job of [first, third]) await row(job).getByRole('checkbox').check();
  await bar(page).getByRole('button', { name: 'Retry' }).click();
  await expect(page.getByText('Skipped: not ended')).toHaveCount(1);
  await page.getByRole('button', { name: 'Retry 1 job' }).click();
  await expect(page.locator('#content').getByText('1 job resubmitted.')).toBeVisible();
  await expect(page.getByRole('row')).toHaveCount(5);
});

test('Undo restores the priority', async ({ page, server }) => {
  const job = await submit(server, 'digits');
  await signIn(page, server);
  await list(page, `/jobs/${job}`);
  const priority = page.locator('summary', { hasText: 'Priority' });
  await priority.click();
  await page.getByLabel('Priority').fill('33');
  await page.getByRole('button', { name: 'Apply', exact: true }).click();
  await expect(priority).toContainText('33');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(priority).toContainText('10');
  expect((await (await server.api(`/api/queue/${job}`)).json()).priority).toBe(10);
});

test('read-only users can select jobs only to compare them', async ({ page, server }) => {
  await submit(server, 'digits');
  await signInAs(page, server, 'ana', 'viewer');
  await page.goto('/jobs');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Jobs');
  await page.locator('tbody').getByRole('checkbox').check();
  await expect(bar(page).getByRole('button')).toHaveText(['Compare', 'Clear']);
});

test('an unknown bulk action is not found', async ({ page, server, consoleErrors }) => {
  await signIn(page, server);
  for (const path of ['/admin/workers/bulk', '/admin/workers/bulk?action=cancel&id=x', '/jobs/bulk?action=drain']) {
    expect((await page.request.get(path)).status(), path).toBe(404);
  }
  await page.goto('/admin/workers/bulk?action=drain&id=w_1');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Nothing to do');
  await expect(page.getByRole('button', { name: /^Drain/ })).toHaveCount(0);
  expect(consoleErrors).toEqual([]);
});
