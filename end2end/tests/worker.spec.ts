// The views of a worker: its state, GPUs, jobs and events.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { Host } from '../host';
import { makeWorker, sendAsAgent, signIn, submit } from '../steps';
import { demoFleet } from '../demo-fleet';

const tab = (page: Page, name: string) => page.getByRole('navigation', { name: 'Worker views' }).getByRole('link', { name });
const figure = (page: Page, name: string) => page.locator('.tile').filter({ hasText: name });

test('each view of a worker has an address', async ({ page, server, context }) => {
  test.setTimeout(120_000);
  const fleet = await demoFleet(server);
  await signIn(page, server);
  await page.goto(`/admin/workers/${fleet.worker}`);
  const views = [['GPUs', '?show=gpus'], ['Jobs', '/jobs'], ['Events', '/events'], ['Overview', '']] as const;
  for (const [name, rest] of views) {
    await test.step(name, async () => {
      await tab(page, name).click();
      await expect(page).toHaveURL(`${server.url}/admin/workers/${fleet.worker}${rest}`);
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
  await page.getByRole('region', { name: 'GPUs' }).getByRole('link', { name: 'GPU history' }).click();
  await expect(page).toHaveURL(/\?show=gpus$/);
  const json = await page.request.get((await page.getByRole('link', { name: 'JSON' }).getAttribute('href'))!);
  expect((await json.json()).name).toBe('atlas');
  fleet.close();
});

test('the attempts of a worker are listed, with recent outcomes', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  const completedJob = await submit(server, 'digits');
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
  await expect(figure(page, 'Consecutive early failures')).toContainText('3');
  await rows.last().getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${completedJob}/log\\?attempt=1`));
  // The alert links to this page.
  await page.goto('/');
  await page.getByRole('listitem').filter({ hasText: 'Jobs fail right after starting' }).getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(`/admin/workers/${host.id}/jobs`));
  host.close();
});

test('the events of a worker are described and paged', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  for (let n = 0; n < 25; n += 1) {
    await server.api(`/api/admin/workers/${host.id}/drain`, { method: 'POST', body: JSON.stringify({ reason: `riser <b>${n}</b>` }) });
    await server.api(`/api/admin/workers/${host.id}/resume`, { method: 'POST' });
  }
  await signIn(page, server);
  await page.goto(`/admin/workers/${host.id}/events`);
  const events = page.locator('.event');
  await expect(events).toHaveCount(50);
  await expect(events.first()).toContainText('Worker resumed');
  await expect(events.nth(1)).toContainText('Worker drain started');
  await expect(events.nth(1)).toContainText('riser <b>24</b>');
  await events.nth(1).locator('summary').click();
  await expect(events.nth(1).getByRole('region')).toContainText('worker.drained');
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Older' }).click();
  await expect(events).toHaveCount(3);
  await expect(events.first()).toContainText('Worker connected');
  await expect(events.nth(1)).toContainText('4\u{a0}×\u{a0}NVIDIA A100-SXM4-80GB · gpu-1.example.org · agent 0.1.0');
  await expect(events.nth(1)).toContainText('by worker gpu-1');
  await expect(events.last()).toContainText('Worker created');
  await page.getByRole('link', { name: 'Newest' }).click();
  await expect(events).toHaveCount(50);
  await page.getByRole('main').getByRole('link', { name: 'Audit log' }).click();
  await expect(page).toHaveURL(new RegExp(`/admin/audit\\?target=${host.id}`));
  host.close();
});

test('the status of the last day is a timeline, with the same content in words', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  await server.api(`/api/admin/workers/${host.id}/drain`, { method: 'POST' });
  await signIn(page, server);
  for (const view of ['', '/events']) {
    await page.goto(`/admin/workers/${host.id}${view}`);
    const day = page.locator('.last-day');
    await expect(day.locator('summary')).toContainText(/Last 24 hours: .*Draining \d+\u{a0}s/u);
    await expect(day.locator('rect.is-draining title')).toHaveText(/^Draining · .* · .* UTC$/);
    await day.locator('summary').click();
    await expect(day.getByRole('listitem').first()).toContainText(/^Draining .*UTC/);
    await expectAccessible(page);
    await picture(page, `worker-last-day${view.replace('/', '-')}`);
  }
  await server.api(`/api/admin/workers/${host.id}/resume`, { method: 'POST' });
  await page.reload();
  await expect(page.locator('.last-day rect').last()).toHaveClass(/is-idle/);
  host.close();
});

test('the views of a worker that never connected say so; an unknown worker has none', async ({ page, server, consoleErrors }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  const token = page.getByRole('region', { name: 'Token' });
  await expect(token.locator('div').filter({ hasText: 'Created' }).last()).toContainText('by admin/bootstrap');
  await expect(token.locator('div').filter({ hasText: 'Last used' }).last()).toContainText('never');
  await expect(page.locator('.last-day summary')).toContainText('Never connected');
  await tab(page, 'GPUs').click();
  await expect(page.getByText('No GPU readings in this period.')).toBeVisible();
  await tab(page, 'Jobs').click();
  await expect(page.getByText('No attempts yet')).toBeVisible();
  await expect(figure(page, 'Success rate')).toContainText('–');
  await picture(page, 'worker-jobs-none');
  await expectAccessible(page);
  await tab(page, 'Events').click();
  await expect(page.locator('.event')).toHaveCount(1);
  for (const view of ['', '?show=gpus', '/jobs', '/events']) {
    expect((await page.goto(`/admin/workers/w_none${view}`))?.status()).toBe(404);
    await expect(page.getByRole('main').getByRole('alert')).toContainText('Not found');
  }
  for (const view of ['jobs', 'events']) {
    expect((await page.goto(`/admin/workers/${id}/${view}?cursor=soon`))?.status()).toBe(422);
    await expect(page.getByRole('main').getByRole('alert')).toContainText(/Request ID: [0-9a-z-]+/);
  }
  await expectAccessible(page);
  // The browser logs documents with status 404 or 422 as errors.
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/404|422/.test(line)));
});

test('an edit of a worker does not overwrite a concurrent change', async ({ page, server, context }) => {
  test.setTimeout(90_000);
  const host = await Host.connect(server, 'gpu-1', { labels: { team: 'nlp' }, reported: { team: 'audio', rack: '7' } });
  const getWorker = async () => (await (await server.api(`/api/admin/workers/${host.id}`)).json());
  const title = page.getByRole('heading', { level: 1 });
  await signIn(page, server);
  await page.goto(`/admin/workers/${host.id}`);
  await page.getByRole('link', { name: 'Edit' }).click();
  await expect(title).toHaveText('Edit gpu-1');
  await expect(page.getByLabel('Label 1')).toHaveValue('team=nlp');
  await expect(page.locator('datalist option[value="rack=7"]')).toHaveCount(1);
  const reported = page.getByRole('region', { name: 'Labels reported by the agent' });
  await expect(reported.getByRole('listitem').filter({ hasText: 'team' })).toContainText('overridden by nlp');
  await expect(reported.getByRole('listitem').filter({ hasText: 'rack' })).toHaveText('rack=7');
  for (const [width, theme] of [[380, 'dark'], [1280, 'light']] as const) {
    await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
    await page.setViewportSize({ width, height: 800 });
    await page.reload();
    await picture(page, `worker-edit-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }

  await page.getByLabel('Name').fill('gpu-2');
  await page.getByLabel('Label 2').fill('zone=a, b');
  await page.getByLabel('Allowed networks').fill('127.0.0.0/8 ::1');
  await page.locator('label[for=ignore]').click();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(title).toHaveText('gpu-2');
  await expect(page.locator('#content').getByText('Changes saved.')).toBeVisible();
  expect((await getWorker()).settings).toEqual({ labels: { team: 'nlp', zone: 'a, b' }, ignore_reported_labels: true, reject_older_agents: false });
  expect((await getWorker()).allowed_networks).toEqual(['127.0.0.0/8', '::1/128']);
  await picture(page, 'worker-edited');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(title).toHaveText('gpu-1');
  expect((await getWorker()).settings).toEqual({ labels: { team: 'nlp' }, ignore_reported_labels: false, reject_older_agents: false });

  await page.goto(`/admin/workers/${host.id}/edit`);
  await server.api(`/api/admin/workers/${host.id}`, { method: 'PATCH', body: JSON.stringify({ labels: { team: 'vision' } }) });
  await page.getByLabel('Name').fill('gpu-3');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('main').getByRole('alert')).toContainText('This worker was changed while you were editing.');
  await expect(page.getByRole('region', { name: 'Current values' })).toContainText('team=vision');
  await expect(page.getByLabel('Name')).toHaveValue('gpu-3');
  await expect(page.getByLabel('Label 1')).toHaveValue('team=nlp');
  await picture(page, 'worker-edit-overtaken');
  await expectAccessible(page);
  expect((await getWorker()).name).toBe('gpu-1');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(title).toHaveText('gpu-3');
  expect((await getWorker()).settings.labels).toEqual({ team: 'nlp' });
  host.close();
});

test('a drain shows its reason and deadline, on the worker’s page and in the list', async ({ page, server }) => {
  test.setTimeout(60_000);
  const host = await Host.connect(server, 'gpu-1');
  await signIn(page, server);
  await page.goto('/admin/workers');
  const row = page.getByRole('row').filter({ hasText: 'gpu-1' });
  const height = (await row.boundingBox())!.height;
  await page.goto(`/admin/workers/${host.id}?confirm=drain`);
  await page.getByLabel('Reason').fill('riser <b>cable</b>');
  await page.getByLabel('Deadline in minutes').fill('90');
  await expectAccessible(page);
  await picture(page, 'worker-drain');
  await page.setViewportSize({ width: 380, height: 800 });
  await picture(page, 'worker-drain-380');
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('button', { name: 'Drain worker' }).click();
  await expect(page.getByText('Draining: riser <b>cable</b> · Remaining jobs are stopped and requeued on')).toBeVisible();
  const { drain_reason, drain_deadline } = await (await server.api(`/api/admin/workers/${host.id}`)).json();
  expect(drain_reason).toBe('riser <b>cable</b>');
  expect((Date.parse(drain_deadline) - Date.now()) / 60_000).toBeCloseTo(90, 0);
  await picture(page, 'worker-draining');
  await page.goto('/admin/workers');
  await expect(row).toContainText('riser <b>cable</b>');
  await picture(page, 'workers-draining');
  expect(Math.abs((await row.boundingBox())!.height - height), 'the height of the row is unchanged').toBeLessThan(2);
  host.close();
});

test('a connected worker has no delete button', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${host.id}`);
  await expect(page.getByRole('link', { name: 'Delete' })).toHaveAttribute('title', /^Only offline workers can be deleted/);
  await page.getByRole('link', { name: 'Delete' }).click();
  const button = page.getByRole('button', { name: 'Delete worker' });
  await expect(button).toBeDisabled();
  await expect(button).toHaveAccessibleDescription('Only offline workers can be deleted: drain this worker and stop its agent first.');
  await picture(page, 'worker-delete-connected');
  await expectAccessible(page);
  host.close();
});

test('labels link to the workers that have them', async ({ page, server }) => {
  const hosts = [await Host.connect(server, 'gpu-1', { labels: { team: 'nlp' } }), await Host.connect(server, 'gpu-2', { labels: { team: 'vision' } })];
  await signIn(page, server);
  await page.goto(`/admin/workers/${hosts[0]!.id}`);
  await page.getByRole('region', { name: 'Details' }).getByRole('link', { name: /^team= ?nlp$/ }).click();
  await expect(page).toHaveURL(`${server.url}/admin/workers?label=team%3Dnlp`);
  await expect(page.locator('tbody tr')).toHaveCount(1);
  await page.goto('/admin/workers');
  await page.locator('tbody').getByRole('link', { name: /^team= ?vision$/ }).click();
  await expect(page).toHaveURL(`${server.url}/admin/workers?label=team%3Dvision`);
  await expect(page.locator('tbody tr')).toHaveCount(1);
  await expect(page.locator('tbody tr')).toContainText('gpu-2');
  hosts.forEach((host) => host.close());
});

test('the page of a worker promises no jobs that it cannot run', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  await signIn(page, server);
  const expectJobsText = (text: string) => test.step(text, async () => {
    await page.goto(`/admin/workers/${host.id}`);
    await expect(page.getByRole('region', { name: 'Jobs', exact: true }).locator('.empty-text')).toHaveText(text);
  });
  const drain = async (action: 'drain' | 'resume') => expect((await server.api(`/api/admin/workers/${host.id}/${action}`, { method: 'POST' })).status).toBe(200);
  await expectJobsText('Ready for the next matching job.');
  await drain('drain');
  await expectJobsText('Draining: accepts no new jobs.');
  await drain('resume');
  await sendAsAgent(server, host.token, 'heartbeat', { unhealthy_reason: 'the disk is full' });
  await expectJobsText('Unhealthy: accepts no new jobs.');
  await sendAsAgent(server, host.token, 'disconnect', {});
  await expectJobsText('Jobs start here once the agent is connected.');
  await drain('drain');
  await expectJobsText('Draining: accepts no new jobs.');
  host.close();
});

test('a draining worker without jobs says that it can be powered off', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  await submit(server, 'digits');
  const offer = await host.run();
  await server.api(`/api/admin/workers/${host.id}/drain`, { method: 'POST', body: JSON.stringify({ reason: 'riser cable' }) });
  await signIn(page, server);
  const row = page.getByRole('row').filter({ hasText: 'gpu-1' });
  await page.goto('/admin/workers');
  await expect(row).toContainText('riser cable');
  await expect(row).not.toContainText('No jobs left');
  const height = (await row.boundingBox())!.height;
  await page.goto(`/admin/workers/${host.id}`);
  await expect(page.getByText('Draining: riser cable', { exact: true }), 'a job is left').toBeVisible();
  await host.report(offer, 'completed');
  for (const view of ['', '/jobs', '/events']) {
    await page.goto(`/admin/workers/${host.id}${view}`);
    await expect(page.getByText('Draining: riser cable · No jobs left · Can be powered off', { exact: true })).toBeVisible();
  }
  await page.goto('/admin/workers');
  await expect(row.getByText('No jobs left', { exact: true })).toBeVisible();
  await expect(row.getByText('Can be powered off', { exact: true })).toBeVisible();
  expect(Math.abs((await row.boundingBox())!.height - height), 'the height of the row is unchanged').toBeLessThan(2);
  await expectAccessible(page);
  await picture(page, 'workers-drained');
  await server.api(`/api/admin/workers/${host.id}/resume`, { method: 'POST' });
  await page.reload();
  await expect(row).toContainText('Idle');
  await expect(row).not.toContainText('Can be powered off');
  host.close();
});
