// What the fleet was used for, with and without JavaScript: the page is the server's alone.
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { makeWorker, registerGpus, sessionOf, signIn, signInAs, submit } from '../steps';
import type { Page } from '@playwright/test';

/** A job that holds the GPUs of a worker; the worker listens until `close`. */
async function running(server: Server): Promise<{ job: string; close: () => void }> {
  const { token } = await makeWorker(server, 'rack-1');
  await registerGpus(server, token, 2);
  const controller = new AbortController();
  const stream = await fetch(`${server.url}/api/workers/stream`, { headers: { 'x-worker-token': sessionOf(token) }, signal: controller.signal });
  expect(stream.status).toBe(200);
  const job = await submit(server, 'digits');
  const report = async (status: string) => {
    const headers = { 'x-worker-token': sessionOf(token), 'content-type': 'application/json' };
    const body = JSON.stringify({ status, attempt: 1 });
    return (await fetch(`${server.url}/api/workers/job/${job}/status`, { method: 'POST', headers, body })).status;
  };
  await expect.poll(() => report('starting')).toBe(200);
  expect(await report('running')).toBe(200);
  return { job, close: () => controller.abort() };
}

async function fits(page: Page): Promise<void> {
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(beyond, 'wider than its window').toBeLessThanOrEqual(0);
}

test('nothing ran yet, and the page says so', async ({ page, server }) => {
  await signIn(page, server);
  await page.getByRole('link', { name: 'Usage' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Usage');
  await expect(page.getByText('Nothing ran in this time')).toBeVisible();
  await picture(page, 'usage-empty-1280');
  await expectAccessible(page);
});

test('use is told by time and group, which stand in the address', async ({ page, server }) => {
  await signIn(page, server);
  const { close } = await running(server);
  await page.goto('/usage');
  const tile = (name: string) => page.getByRole('listitem').filter({ hasText: name });
  await expect(tile('Jobs').last()).toContainText('1 attempt');
  await expect(tile('Utilisation')).toContainText('%');
  const groups = page.getByRole('table', { name: /^Group by/ });
  await expect(groups.getByRole('row', { name: /^admin/ })).toContainText(/(9\d(\.\d)?|100)%/);
  await page.getByRole('link', { name: '30 days' }).click();
  await page.getByRole('navigation', { name: 'Group by' }).getByRole('link', { name: 'Worker' }).click();
  await expect(page).toHaveURL(/\?days=30&by=worker/);
  await expect(groups.getByRole('link', { name: 'rack-1', exact: true })).toHaveAttribute('href', /^\/admin\/workers\/w_/);
  await expect(groups.getByRole('link', { name: /^Jobs: \d+ · rack-1$/ })).toHaveAttribute('href', /^\/jobs\?worker=w_/);
  await expect(page.getByRole('table', { name: /How much of the GPUs/ }).getByRole('row')).toHaveCount(8);
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    await fits(page);
    await picture(page, `usage-${scheme}-${width}`);
    await expectAccessible(page);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  const csv = await page.request.get((await page.getByRole('link', { name: 'Export CSV' }).getAttribute('href'))!);
  expect(await csv.text()).toMatch(/^worker,gpu_hours,run_hours,jobs,attempts\r\nrack-1,/);
  await page.getByLabel('From').fill('2020-01-01');
  await page.getByLabel('To', { exact: true }).fill('2020-01-07');
  await page.getByRole('button', { name: 'Show' }).click();
  await expect(page).toHaveURL(/from=2020-01-01&to=2020-01-07/);
  await expect(page.getByText('Nothing ran in this time')).toBeVisible();
  await page.goBack();
  await expect(groups).toBeVisible();
  close();
});

test('a researcher finds their own use and nothing of the fleet', async ({ page, server }) => {
  const { close } = await running(server);
  await signInAs(page, server, 'eve', 'researcher');
  await page.goto('/usage');
  await expect(page.getByText('Nothing ran in this time')).toBeVisible();
  await expect(page.getByText('Utilisation')).toHaveCount(0);
  await expect(page.getByText('Idle while queued')).toHaveCount(0);
  close();
});
