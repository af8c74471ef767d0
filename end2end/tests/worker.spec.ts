// The views of a worker: how it stands, how its GPUs do, what it did, what happened with it.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { Host } from '../host';
import { makeWorker, signIn, submit } from '../steps';
import { town } from '../town';

const tab = (page: Page, name: string) => page.getByRole('navigation', { name: 'Views of the worker' }).getByRole('link', { name });
const figure = (page: Page, name: string) => page.locator('.tile').filter({ hasText: name });

test('the views of a worker are links, each with an address, and look well', async ({ page, server, context }) => {
  test.setTimeout(120_000);
  const here = await town(server);
  await signIn(page, server);
  await page.goto(`/admin/workers/${here.worker}`);
  const views = [['GPUs', '?show=gpus'], ['Jobs', '/jobs'], ['Events', '/events'], ['Overview', '']] as const;
  for (const [name, rest] of views) {
    await test.step(name, async () => {
      await tab(page, name).click();
      await expect(page).toHaveURL(`${server.url}/admin/workers/${here.worker}${rest}`);
      await expect(tab(page, name)).toHaveAttribute('aria-current', 'page');
      await expect(page.getByRole('heading', { level: 1 })).toHaveText('atlas');
      await expect(page.getByRole('main').getByRole('link', { name: 'Workers' })).toHaveAttribute('href', '/admin/workers');
      for (const [width, theme] of [[1280, 'light'], [380, 'dark']] as const) {
        await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
        await page.setViewportSize({ width, height: 800 });
        await page.reload();
        await expect(page.locator('html')).toHaveAttribute('data-theme', theme);
        await picture(page, `worker-${name.toLowerCase()}-${theme}-${width}`);
        expect(await page.locator('html').evaluate((html) => html.scrollWidth), `${name} fits`).toBeLessThanOrEqual(width);
      }
      await expectAccessible(page);
      await page.setViewportSize({ width: 1280, height: 800 });
    });
  }
  await expect(page.getByRole('region', { name: 'GPUs' }).getByRole('listitem')).toHaveCount(8);
  await page.getByRole('region', { name: 'GPUs' }).getByRole('link', { name: 'GPUs over time' }).click();
  await expect(page).toHaveURL(/\?show=gpus$/);
  const json = await page.request.get((await page.getByRole('link', { name: 'JSON' }).getAttribute('href'))!);
  expect((await json.json()).name).toBe('atlas');
  here.close();
});

test('what a worker did is listed, with how it went of late', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  const good = await submit(server, 'digits');
  await host.report(await host.run(), 'completed');
  for (let n = 0; n < 3; n += 1) {
    await submit(server, 'digits-quick');
    await host.report(await host.run(), 'failed', { error: 'CUDA out of <b>memory</b>', exit_code: 1 });
  }
  await signIn(page, server);
  await page.goto(`/admin/workers/${host.id}/jobs`);
  const rows = page.getByRole('table', { name: 'Attempts' }).locator('tbody').getByRole('row');
  await expect(rows).toHaveCount(4);
  await expect(rows.first()).toContainText('digits-quick');
  await expect(rows.first()).toContainText('Failed');
  await expect(rows.first()).toContainText('CUDA out of <b>memory</b>');
  await expect(rows.last()).toContainText('Completed');
  await expect(figure(page, 'Attempts')).toContainText('4');
  await expect(figure(page, 'Attempts')).toContainText('in the last 30 days');
  await expect(figure(page, 'Success rate')).toContainText('25%');
  await expect(figure(page, 'Success rate')).toContainText('1 completed, 3 failed, 0 lost');
  await expect(figure(page, 'Fast failures')).toContainText('3');
  await rows.last().getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${good}\\?attempt=1`));
  // What needs a look leads there.
  await page.goto('/');
  await page.getByRole('listitem').filter({ hasText: 'Attempts fail there right after they start' }).getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(`/admin/workers/${host.id}/jobs`));
  host.close();
});

test('what happened with a worker is told in words, in parts', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  for (let n = 0; n < 25; n += 1) {
    await server.api(`/api/admin/workers/${host.id}/drain`, { method: 'POST', body: JSON.stringify({ reason: `riser <b>${n}</b>` }) });
    await server.api(`/api/admin/workers/${host.id}/resume`, { method: 'POST' });
  }
  await signIn(page, server);
  await page.goto(`/admin/workers/${host.id}/events`);
  const events = page.locator('.event');
  await expect(events).toHaveCount(50);
  await expect(events.first()).toContainText('Resumed a worker');
  await expect(events.nth(1)).toContainText('Let a worker drain');
  await expect(events.nth(1)).toContainText('riser <b>24</b>');
  await events.nth(1).locator('summary').click();
  await expect(events.nth(1).getByRole('region')).toContainText('worker.drained');
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Older' }).click();
  await expect(events).toHaveCount(3);
  await expect(events.first()).toContainText('Worker listens');
  await expect(events.nth(1)).toContainText('4\u{a0}×\u{a0}NVIDIA A100-SXM4-80GB · agent 0.1.0');
  await expect(events.nth(1)).toContainText('by worker gpu-1');
  await expect(events.last()).toContainText('Made a worker');
  await page.getByRole('link', { name: 'Newest' }).click();
  await expect(events).toHaveCount(50);
  await page.getByRole('main').getByRole('link', { name: 'Audit trail' }).click();
  await expect(page).toHaveURL(new RegExp(`/admin/audit\\?target=${host.id}`));
  host.close();
});

test('a worker that never came has views that say so, and one that is not there none', async ({ page, server, complaints }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  const token = page.getByRole('region', { name: 'Token' });
  await expect(token.locator('div').filter({ hasText: 'Made' }).last()).toContainText('by admin/bootstrap');
  await expect(token.locator('div').filter({ hasText: 'Last used' }).last()).toContainText('never');
  await tab(page, 'GPUs').click();
  await expect(page.getByText('Nothing was heard of its GPUs')).toBeVisible();
  await tab(page, 'Jobs').click();
  await expect(page.getByText('No attempt yet')).toBeVisible();
  await expect(figure(page, 'Success rate')).toContainText('–');
  await picture(page, 'worker-jobs-none');
  await expectAccessible(page);
  await tab(page, 'Events').click();
  await expect(page.locator('.event')).toHaveCount(1);
  for (const view of ['', '?show=gpus', '/jobs', '/events']) {
    expect((await page.goto(`/admin/workers/w_none${view}`))?.status()).toBe(404);
    await expect(page.getByRole('main').getByRole('alert')).toContainText('There is no such thing here');
  }
  for (const view of ['jobs', 'events']) {
    expect((await page.goto(`/admin/workers/${id}/${view}?cursor=soon`))?.status()).toBe(422);
    await expect(page.getByRole('main').getByRole('alert')).toContainText(/Request [0-9a-z-]+/);
  }
  await expectAccessible(page);
  // The browser notes a document that is 404 or 422 as an error of its console.
  complaints.splice(0, complaints.length, ...complaints.filter((line) => !/404|422/.test(line)));
});
