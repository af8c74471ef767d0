// The page of a job: its overview is one screen, which shows what its state has. With and without JavaScript.
import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host, sample, startJob } from '../host';
import { live, signIn, submit } from '../steps';
import { demoFleet, logText, points } from '../demo-fleet';

const TRACEBACK = ['Traceback (most recent call last):', '  File "train.py", line 88, in <module>', '    main()', '  File "train.py", line 71, in main', '    loss = step(batch)'];
const ERROR = 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.';

/** Runs a job that trains for a while, with samples and a checkpoint. */
async function trainPartly(server: Server, host: Host) {
  const job = await submit(server, 'digits');
  const offer = await host.run();
  await host.progress(offer, points(0, 400, 1_000, 0.4));
  for (const prompt of [0, 1, 2]) await host.file(offer, `validation_images/step_400_${prompt}.png`, 'sample', sample(0.4, prompt + 1));
  for (const step of [200, 400]) await host.checkpoint(offer, step);
  return { job, offer };
}

async function crash(server: Server, host: Host): Promise<string> {
  const { job, offer } = await trainPartly(server, host);
  const before = logText(0, 400);
  await host.log(offer, [before.trimEnd(), ...TRACEBACK, ERROR, 'closing 2 data loaders', ''].join('\n'));
  const line = before.split('\n').length + TRACEBACK.length;
  await host.report(offer, 'failed', { error: [ERROR, ...TRACEBACK].join('\n'), error_line: line, exit_code: 1 });
  return job;
}

async function cancel(server: Server, host: Host): Promise<string> {
  const { job, offer } = await trainPartly(server, host);
  expect((await server.api(`/api/queue/${job}/cancel`, { method: 'POST' })).status).toBe(200);
  await host.report(offer, 'cancelled');
  return job;
}

const regions = (page: Page) => page.getByRole('main').getByRole('region').evaluateAll((all) =>
  all.map((region) => region.getAttribute('aria-label') ?? document.getElementById(region.getAttribute('aria-labelledby')!)!.firstChild!.textContent!.trim()));
const tabs = (page: Page) => page.getByRole('navigation', { name: 'Job views' }).getByRole('link').evaluateAll((links) => links.map((link) => link.firstChild!.textContent));

const ALL_TABS = ['Overview', 'Charts', 'Log', 'Samples', 'Artifacts', 'Configuration', 'System', 'Events'];

test('the overview of a job is one screen in each state, and shows what the state has', async ({ page, server, context, javaScriptEnabled }) => {
  test.setTimeout(180_000);
  const fleet = await demoFleet(server);
  const crashed = await crash(server, fleet.hosts[1]!);
  const cancelled = await cancel(server, fleet.hosts[1]!);
  await signIn(page, server);
  const states: [string, string, string[], string[], RegExp][] = [
    ['waiting', fleet.waiting, ['Pending reasons', 'Details'], ['Overview', 'Configuration', 'Events'], /^Waits for a worker that meets the requirements\.$/],
    ['running', fleet.running, ['Progress', 'Metrics', 'Log', 'Details', 'Samples'], ALL_TABS, /^Step 640 of 2,000 · [\d\s]+min[\d\ss]* left$/],
    ['failed', fleet.failed, ['Error', 'Log', 'Details'], ['Overview', 'Log', 'Configuration', 'System', 'Events'], /^the trainer ended with status 1: CUDA out of memory$/],
    ['crashed', crashed, ['Error', 'Full error', 'Log', 'Last metrics', 'Checkpoints', 'Details'], ALL_TABS, /^torch\.OutOfMemoryError: CUDA out of memory\./],
    ['completed', fleet.completed, ['Weights', 'Metrics', 'Samples', 'Final metrics', 'Details'], ALL_TABS, /^Training completed after \d+\s\w+\.$/],
    ['cancelled', cancelled, ['Metrics', 'Samples', 'Last metrics', 'Checkpoints', 'Details'], ALL_TABS, /^Cancelled by admin\.$/],
  ];
  for (const [name, job, panels, links, sentence] of states) {
    await page.setViewportSize({ width: 1_440, height: 900 });
    await page.goto(`/jobs/${job}`);
    if (javaScriptEnabled) await live(page);
    await expect(page.locator('.job-note')).toHaveText(sentence);
    expect.soft(await regions(page), name).toEqual(panels);
    expect.soft(await tabs(page), name).toEqual(links);
    const height = await page.locator('html').evaluate((html) => html.scrollHeight);
    expect.soft(height, `${name}: at most 1.2 screens`).toBeLessThanOrEqual(1_080);
    for (const [theme, width] of [['light', 1_440], ['dark', 1_440], ['light', 380], ['dark', 380]] as const) {
      await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
      await page.setViewportSize({ width, height: 900 });
      await page.reload();
      await expect(page.locator('html')).toHaveAttribute('data-theme', theme);
      await expect(page.locator('.job-note')).toHaveText(sentence);
      expect(await page.locator('html').evaluate((html) => html.scrollWidth), name).toBeLessThanOrEqual(width);
      await picture(page, `job-${name}-${theme}-${width}`);
    }
    await expectAccessible(page);
  }
  fleet.close();
});

test('the page of a failed job shows the lines of the log around the error', async ({ page, server }) => {
  const host = await Host.connect(server, 'atlas', {});
  const job = await crash(server, host);
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  const log = page.getByRole('region', { name: 'Log' });
  await expect(log.locator('.is-chosen')).toContainText(ERROR);
  await expect(log).toContainText('line 71, in main');
  await expect(log).toContainText('closing 2 data loaders');
  await expect(log.locator('.log-row')).toHaveCount(9);
  const line = await log.locator('.is-chosen .log-number').innerText();
  await log.getByRole('link', { name: 'Open log' }).click();
  await expect(page).toHaveURL(`${server.url}/jobs/${job}/log?attempt=1&line=${line}`);
  await expect(page.locator('.log-row.is-chosen')).toContainText(ERROR);
  host.close();
});

test('several files of weights are one download', async ({ page, server }) => {
  const { host, offer } = await startJob(server);
  const names = ['00001', '00002'].map((part) => `transformer/model-${part}-of-00002.safetensors`);
  for (const name of names) await host.file(offer, name, 'final', Buffer.from(`weights of ${name}`));
  await host.file(offer, 'notes.txt', 'other', Buffer.from('notes'));
  await host.report(offer, 'completed');
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}`);
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download weights' }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe('digits-1-weights.zip');
  const archive = readFileSync(await download.path());
  for (const name of names) expect(archive.includes(`weights of ${name}`)).toBe(true);
  expect(archive.includes('notes.txt')).toBe(false);
});

test('charts are grouped by the prefixes of their metrics, and shown for each attempt', async ({ page, server }) => {
  test.setTimeout(60_000); // the second attempt waits for the end of the back-off
  const { host, offer } = await startJob(server);
  await host.progress(offer, points(0, 100, 1_000, 0.4));
  await host.report(offer, 'requeue', { reason: 'the host restarts' });
  const second = await host.run();
  await host.progress(second, points(0, 700, 1_000, 0.4));
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}?show=charts`);
  await expect(page.getByRole('heading', { level: 3 })).toHaveText(['val']);
  const loss = page.getByRole('img', { name: /^Loss: / }).first();
  await expect(loss).toContainText('700');
  await expectAccessible(page);
  await picture(page, 'job-charts-prefix');
  const attempts = page.getByRole('navigation', { name: 'Attempts' });
  await expect(attempts.getByRole('link', { name: 'Attempt 2' })).toHaveAttribute('aria-current', 'true');
  await attempts.getByRole('link', { name: 'Attempt 1' }).click();
  await expect(attempts.getByRole('link', { name: 'Attempt 1' })).toHaveAttribute('aria-current', 'true');
  await expect(loss).not.toContainText('700');
  await expect(loss).toContainText('100');
  host.close();
});
