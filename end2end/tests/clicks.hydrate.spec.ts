// Daily tasks of users, and how many clicks each takes.
import { expect, test, type Server } from '../fixtures';
import type { Page } from '@playwright/test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../programs';
import { Host } from '../host';
import { waitForJob, live, makeWorker, PASSWORD, registerGpus, signIn, signInAs, submit } from '../steps';

/** Counts clicks from now on, in all documents of the tab. */
async function countClicks(page: Page): Promise<() => Promise<number>> {
  let clicks = 0;
  await page.exposeFunction('pressed', () => void clicks++);
  const listen = () => addEventListener('pointerdown', () => (window as unknown as { pressed(): void }).pressed(), true);
  await page.addInitScript(listen);
  await page.evaluate(listen);
  return async () => clicks;
}

/** Creates a registered worker with two GPUs. */
async function createRegisteredWorker(server: Server): Promise<{ worker_id: string; token: string }> {
  const worker = await makeWorker(server, 'rack-1');
  await registerGpus(server, worker.token, 2);
  return worker;
}

/** Submits jobs and cancels them, 500 at a time, because a user can have only 1,000 queued jobs. */
async function createCancelledJobs(server: Server, count: number): Promise<void> {
  for (let before = 0; before < count; before += 500) {
    const submitSome = async () => {
      const ids: string[] = [];
      for (let n = 0; n < 25; n++) ids.push(await submit(server, 'digits'));
      return ids;
    };
    const ids = (await Promise.all(Array.from({ length: 20 }, submitSome))).flat();
    const response = await server.api('/api/queue/bulk/cancel', { method: 'POST', body: JSON.stringify({ ids }) });
    expect(response.status, await response.text()).toBe(200);
  }
  const { counts } = await (await server.api('/api/queue?limit=1')).json();
  expect(counts.cancelled).toBe(count);
}

test.beforeEach(async ({ page, server, claimed }) => {
  test.setTimeout(60_000);
  if (claimed) await signIn(page, server);
});

test.describe(() => {
  test.use({ claimed: false });
  test('create the first admin: 1 click', async ({ page, server }) => {
    const link = /http\S+\/login\?setup=\S+/.exec(server.program.log())![0];
    await page.goto(link);
    const clicks = await countClicks(page);
    await page.getByLabel('Name').fill('ada');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');
    expect(await clicks()).toBe(1);
  });
});

test('create a worker: 2 clicks', async ({ page }) => {
  const clicks = await countClicks(page);
  await page.getByRole('link', { name: 'Create a worker' }).click();
  await page.getByLabel('Name').fill('rack-1');
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.locator('pre', { hasText: 'simpletuner worker' }).first()).toBeVisible();
  expect(await clicks()).toBe(2);
});

test('submit a job: 3 clicks, including the choice of a configuration', async ({ page, server }) => {
  await createRegisteredWorker(server);
  const clicks = await countClicks(page);
  await page.getByRole('link', { name: 'Train in Cloud' }).first().click();
  await page.locator('label', { hasText: /^digits(?!-)/ }).click();
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page).toHaveURL(/\/jobs\/j_/);
  expect(await clicks()).toBe(3);
});

test('see why a job is pending: 1 click', async ({ page, server }) => {
  await createRegisteredWorker(server);
  const body = JSON.stringify({ config_name: 'digits', gpu_count: 16 });
  await server.api('/api/queue/submit', { method: 'POST', body });
  await page.reload();
  await live(page);
  const clicks = await countClicks(page);
  await page.getByRole('region', { name: 'Recent jobs' }).getByRole('link', { name: 'digits' }).click();
  await expect(page.getByRole('region', { name: 'Pending reasons' })).toContainText('16 GPUs');
  expect(await clicks()).toBe(1);
});

test('see why a job failed: 1 click', async ({ page, server, agent }) => {
  const { token } = await makeWorker(server, 'rack-1');
  const { bundle } = await (await server.api('/api/configs/digits-quick')).json();
  const files = { ...bundle.files, 'config.json': JSON.stringify({ ...JSON.parse(bundle.files['config.json']), example_fail_at_step: 3 }) };
  await server.api('/api/configs/breaking', { method: 'PUT', body: JSON.stringify({ files }) });
  agent({ token, args: ['--persistent'] });
  await waitForJob(server, await submit(server, 'breaking'), 'failed');
  await page.reload();
  await live(page);
  const clicks = await countClicks(page);
  await page.getByRole('region', { name: 'Recent jobs' }).getByRole('link', { name: 'breaking' }).click();
  await expect(page.getByText(/RuntimeError|Error:/).first()).toBeVisible();
  expect(await clicks()).toBe(1);
});

test('download the weights of a finished job: 2 clicks', async ({ page, server, agent }) => {
  const { token } = await makeWorker(server, 'rack-1');
  agent({ token, args: ['--persistent'] });
  await waitForJob(server, await submit(server, 'digits-quick'), 'completed');
  await page.reload();
  await live(page);
  const clicks = await countClicks(page);
  await page.getByRole('region', { name: 'Recent jobs' }).getByRole('link', { name: 'digits-quick' }).click();
  const file = page.getByRole('row').filter({ hasText: /^model\.safetensors/ });
  const downloading = page.waitForEvent('download');
  await file.getByRole('link').last().click();
  await (await downloading).path();
  expect(await clicks()).toBe(2);
});

test('drain a worker with a reason: 2 clicks', async ({ page, server }) => {
  const { worker_id: id } = await createRegisteredWorker(server);
  await page.goto(`/admin/workers/${id}`);
  await live(page);
  const clicks = await countClicks(page);
  await page.locator('summary', { hasText: 'Drain' }).first().click();
  await page.getByLabel('Reason').fill('new power supply');
  await page.getByRole('button', { name: 'Drain worker' }).click();
  await expect(page.getByText('Draining: new power supply')).toBeVisible();
  expect(await clicks()).toBe(2);
});

test('revoke a leaked token: 2 clicks', async ({ page, server }) => {
  const { worker_id: id } = await createRegisteredWorker(server);
  await page.goto(`/admin/workers/${id}`);
  await live(page);
  const clicks = await countClicks(page);
  const token = page.getByRole('region', { name: 'Token', exact: true });
  await token.locator('summary', { hasText: 'Rotate token' }).click();
  await token.getByRole('button', { name: 'Rotate token' }).click();
  await expect(page.getByLabel('Worker token', { exact: true })).toBeVisible();
  expect(await clicks()).toBe(2);
});

test('add a user: 2 clicks', async ({ page }) => {
  const clicks = await countClicks(page);
  await page.getByRole('link', { name: 'Users' }).first().click();
  await page.getByLabel('Name').fill('eve');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Add user' }).click();
  await expect(page.getByRole('row', { name: /^eve / })).toBeVisible();
  expect(await clicks()).toBe(2);
});

test('find who deleted a worker by its name: 1 click', async ({ page, server }) => {
  const { worker_id: id } = await makeWorker(server, 'delos');
  expect((await server.api(`/api/admin/workers/${id}`, { method: 'DELETE' })).status).toBe(200);
  const clicks = await countClicks(page);
  await page.getByRole('link', { name: 'Audit' }).first().click();
  await page.getByLabel('Target').fill('delos');
  await page.getByLabel('Target').press('Enter');
  await expect(page.getByRole('main')).toContainText('Worker deleted');
  expect(await clicks()).toBe(1);
});

test('find a job by its name among ten thousand: 0 clicks', async ({ page, server }) => {
  test.setTimeout(180_000); // mostly to create the jobs
  const job = await submit(server, 'digits-quick');
  await createCancelledJobs(server, 10_000);
  await page.goto('/jobs');
  await live(page);
  const clicks = await countClicks(page);
  await page.keyboard.press('/');
  await page.keyboard.type('digits-q');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('table').locator('tbody tr')).toHaveCount(1);
  await expect(page.getByRole('link', { name: 'digits-quick' })).toHaveAttribute('href', `/jobs/${job}`);
  expect(await clicks()).toBe(0);
});

test('submit a job again with another learning rate: 3 clicks', async ({ page, server }) => {
  const job = await submit(server, 'digits');
  await page.goto(`/jobs/${job}`);
  await live(page);
  const clicks = await countClicks(page);
  await page.getByRole('link', { name: 'Edit and resubmit' }).click();
  await page.locator('summary', { hasText: 'Overrides' }).click();
  await page.getByLabel('Override 1', { exact: true }).fill('learning_rate=0.25');
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page.getByText('Overrides', { exact: true })).toBeVisible();
  expect(await clicks()).toBe(3);
});

test('cancel a job on its page: 2 clicks', async ({ page, server }) => {
  const job = await submit(server, 'digits');
  await page.goto(`/jobs/${job}`);
  await live(page);
  const clicks = await countClicks(page);
  await page.locator('summary', { hasText: 'Cancel job' }).click();
  await page.getByRole('button', { name: 'Cancel this job' }).click();
  await waitForJob(server, job, 'cancelled');
  expect(await clicks()).toBe(2);
});

test('see which jobs use the GPUs: 1 click', async ({ page, server }) => {
  const host = await Host.connect(server, 'rack-1', { gpus: 2 });
  await submit(server, 'digits');
  await host.run();
  const clicks = await countClicks(page);
  await page.getByRole('link', { name: 'Fleet', exact: true }).first().click();
  const row = page.getByRole('row').filter({ hasText: 'rack-1' });
  await expect(row.getByRole('link', { name: 'digits' })).toBeVisible();
  expect(await clicks()).toBe(1);
});

test('bring a worker online: 2 clicks and one field', async ({ page, shell }) => {
  await page.goto('/admin/workers');
  await live(page);
  const clicks = await countClicks(page);
  await page.getByRole('link', { name: 'Create worker' }).first().click();
  await page.getByLabel('Name').fill('rack-1');
  await page.getByRole('button', { name: 'Create worker' }).click();
  shell(await page.locator('pre', { hasText: 'simpletuner worker --orchestrator-url' }).first().innerText());
  const contact = page.locator('.contact');
  await expect(contact).toHaveClass(/is-here/, { timeout: 30_000 });
  await expect(contact).toContainText('Connected');
  await expect(page.getByRole('main').locator('.status-good').filter({ hasText: 'Idle' })).toBeVisible();
  expect(await clicks()).toBe(2);
});

test('see why a job is pending: 1 click; the reason appears once, and the closest worker comes first', async ({ page, server }) => {
  await makeWorker(server, 'a-never-connected');
  for (const [name, labels] of [['b-label-and-gpus', {}], ['c-gpus', { site: 'graz' }]] as const) {
    await registerGpus(server, (await makeWorker(server, name, labels)).token, 2);
  }
  const body = JSON.stringify({ config_name: 'digits', gpu_count: 16, worker_labels: { site: 'graz' } });
  expect((await server.api('/api/queue/submit', { method: 'POST', body })).status).toBe(201);
  await page.reload();
  await live(page);
  const clicks = await countClicks(page);
  await page.getByRole('region', { name: 'Recent jobs' }).getByRole('link', { name: 'digits' }).click();
  const reasons = page.getByRole('region', { name: 'Pending reasons' });
  await expect(reasons.getByRole('rowheader')).toHaveText([/^c-gpus/, /^b-label-and-gpus/, /^a-never-connected/]);
  const paragraphs = await page.getByRole('main').locator('p:visible').allInnerTexts();
  expect(paragraphs.filter((text) => text.includes('No worker meets the requirements.'))).toHaveLength(1);
  expect(paragraphs.filter((text, at) => text.trim() && paragraphs.indexOf(text) < at), 'shown twice').toEqual([]);
  expect(await clicks()).toBe(1);
});

test('see why a job failed on two GPUs: 1 click; the exception, not the last lines of the launcher', async ({ page, server, agent }) => {
  const { token } = await makeWorker(server, 'rack-1');
  const output = readFileSync(join(ROOT, 'app/domain/exit_diagnosis/recorded/torchrun_oom.txt'), 'utf8');
  const [, after = ''] = output.split('torch.OutOfMemoryError');
  expect(after).toContain('Sending process 4714 closing signal SIGTERM');
  const dir = join(server.dataDir, 'trainer');
  mkdirSync(dir);
  writeFileSync(join(dir, 'output'), output);
  writeFileSync(join(dir, 'trainer.sh'), 'cat "${0%/*}/output" >&2\nexit 1\n');
  agent({ token, args: ['--persistent', '--trainer', `sh ${dir}/trainer.sh`] });
  const job = await submit(server, 'digits');
  await waitForJob(server, job, 'failed');
  const headline = /^torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate 2\.00 GiB/;
  await page.goto('/jobs?status=failed');
  await live(page);
  const row = page.getByRole('table').locator('tbody tr');
  await expect(row).toHaveCount(1);
  await expect(row.locator('.reason-line')).toHaveText(headline);
  const clicks = await countClicks(page);
  await row.getByRole('link', { name: 'digits' }).click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${job}$`));
  const reason = page.getByRole('region', { name: 'Error', exact: true });
  await expect(reason.locator('.reason-head')).toHaveText(headline);
  await expect(reason).not.toContainText('SIGTERM');
  expect(await clicks()).toBe(1);
});

for (const role of ['viewer', 'researcher']) {
  test(`see which jobs use the GPUs, as a ${role}: 1 click`, async ({ page, server }) => {
    await createRegisteredWorker(server);
    await page.goto('about:blank'); // a page that is still open would check its session
    await page.context().clearCookies();
    await signInAs(page, server, 'vic', role);
    const clicks = await countClicks(page);
    await page.getByRole('link', { name: 'Fleet', exact: true }).first().click();
    await expect(page.getByRole('row').filter({ hasText: 'rack-1' })).toBeVisible();
    expect(await clicks()).toBe(1);
  });
}
