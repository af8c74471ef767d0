// A server-rendered form with its script: the preview follows the input.
import { expect, expectAccessible, test } from '../fixtures';
import { live, makeWorker, registerGpus, signIn } from '../steps';

test('the preview and the address follow the input', async ({ page, server, consoleErrors }) => {
  const { token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 2);
  await signIn(page, server);
  await page.goto('/train');
  await live(page);
  const summary = page.locator('.preview-summary');
  await expect(summary).toContainText('1 worker: 1 is remote,');
  await page.evaluate(() => Object.assign(window, { sameDocument: true }));
  await page.getByLabel('GPUs', { exact: true }).fill('3');
  await expect(summary).toContainText('1 worker: 1 is remote, 0 of them have 3 GPUs.');
  await expect(page).toHaveURL(/gpus=3/);
  await expect(page.locator('pre', { hasText: 'jobs submit' })).toContainText('--gpus 3');
  await expect(page.getByLabel('GPUs', { exact: true })).toBeFocused();
  // A delayed older response does not replace a newer one.
  let release = () => {};
  const released = new Promise<void>((done) => (release = done));
  await page.route(/gpus=64/, async (route) => {
    await released;
    await route.continue();
  });
  const slow = page.waitForRequest(/gpus=64/);
  await page.getByLabel('GPUs', { exact: true }).fill('64');
  await slow;
  await page.getByLabel('GPUs', { exact: true }).fill('2');
  await expect(summary).toContainText('1 of them has 2 GPUs');
  const delayedResponse = page.waitForResponse(/gpus=64/);
  release();
  await delayedResponse;
  await expect(summary).toContainText('1 of them has 2 GPUs');
  await expect(page).toHaveURL(/gpus=2/);
  // The content of another configuration is shown.
  await page.getByText('Files to submit').click();
  await page.locator('label', { hasText: /^digits-quick/ }).click();
  await expect(page.locator('[data-part=content]')).toContainText('150');
  expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
  await expectAccessible(page);
  // A preview without a response is not presented as current.
  await page.route(/gpus=1(&|$)/, (route) => route.abort());
  await page.getByLabel('GPUs', { exact: true }).fill('1');
  await expect(page.getByText('The server did not respond')).toBeVisible();
  await page.getByLabel('GPUs', { exact: true }).fill('2');
  await expect(page.getByText('The server did not respond')).toBeHidden();
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !line.includes('ERR_FAILED')));
});

test('the full command is copied', async ({ page, server, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await signIn(page, server);
  await page.goto('/train');
  await page.getByRole('button', { name: 'Copy: curl' }).click();
  const text = await page.locator('pre', { hasText: 'curl -sS' }).innerText();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(text);
});
