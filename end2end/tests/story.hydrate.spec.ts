// The main story of a user: from an empty fleet to a trained model on disk.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { live, signIn } from '../steps';

test('a new user connects a worker, trains the example, and downloads the result', async ({ page, server, shell }) => {
  test.setTimeout(180_000);
  await signIn(page, server);

  await page.getByRole('link', { name: 'Workers' }).first().click();
  await page.getByRole('link', { name: 'Create worker' }).first().click();
  await page.getByLabel('Name').fill('story-worker');
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('story-worker');
  await expect(page.getByText('Waiting for the agent to connect')).toBeVisible();
  await expectAccessible(page);
  const command = await page.locator('pre', { hasText: 'simpletuner worker --orchestrator-url' }).innerText();

  // The list is open before the agent starts, and is not reloaded.
  await page.getByRole('link', { name: 'Workers', exact: true }).first().click();
  const row = page.getByRole('row').filter({ hasText: 'story-worker' });
  await expect(row).toContainText('Never connected');
  await live(page);
  await page.evaluate(() => Object.assign(window, { sameDocument: true }));
  shell(command);
  await expect(row).toContainText('Idle');
  expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
  await picture(page, 'workers');

  await page.getByRole('link', { name: 'Train in Cloud' }).first().click();
  await page.locator('label', { hasText: /^digits(?!-)/ }).click();
  await page.locator('label', { hasText: /^Worker/ }).first().click();
  await picture(page, 'train');
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page).toHaveURL(/\/jobs\/j_/);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('digits #1');
  await live(page);
  await page.evaluate(() => Object.assign(window, { sameDocument: true }));

  const bar = page.getByRole('progressbar').first();
  const percent = async () => Number(await bar.getAttribute('aria-valuenow'));
  await expect.poll(percent, { timeout: 30_000 }).toBeGreaterThan(0);
  const early = await percent();
  const log = page.getByRole('log');
  await expect(log).toContainText('step');
  const lines = (await log.innerText()).length;
  await expect.poll(percent, { timeout: 30_000 }).toBeGreaterThan(early);
  await expect.poll(async () => (await log.innerText()).length, { timeout: 30_000 }).toBeGreaterThan(lines);
  await picture(page, 'job-running');

  await expect(page.getByText('Completed').first()).toBeVisible({ timeout: 90_000 });
  await expect(page.getByRole('row').filter({ hasText: /^model\.safetensors/ })).toBeVisible();
  await expect(page.getByRole('img', { name: /loss/i })).toBeVisible();
  await expect(page.locator('img[src*="validation_images"]').first()).toBeVisible();
  expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
  await expectAccessible(page);
  await picture(page, 'job-completed');

  const downloading = page.waitForEvent('download');
  await page.getByRole('row').filter({ hasText: /^model\.safetensors/ }).getByRole('link').last().click();
  const path = join(server.dataDir, 'downloaded.safetensors');
  await (await downloading).saveAs(path);
  const job = page.url().split('/').pop();
  const listed = await (await server.api(`/api/queue/${job}/artifacts`)).json();
  const model = listed.artifacts.find((artifact: { path: string }) => artifact.path === 'model.safetensors');
  expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(model.sha256);
});
