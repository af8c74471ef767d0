// Browser events that arrive at a page shortly before or after it is replaced.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures';
import { live, makeWorker, signIn } from '../steps';

/** Delays matching requests until the returned function is called. */
async function holdRequests(page: Page, url: RegExp): Promise<() => void> {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(url, async (route) => {
    await released;
    await route.continue();
  });
  return release;
}

test('a list stays usable while the next one is fetched', async ({ page, server }) => {
  for (const name of ['ada', 'bob']) await makeWorker(server, name, { team: name });
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  const release = await holdRequests(page, /\/api\/admin\/workers\?/);
  await page.locator('tbody').getByRole('link', { name: /^team= ?bob$/ }).click();
  await expect(page).toHaveURL(/label=team%3Dbob/);
  await page.locator('tbody .pick').first().check();
  await expect(page.getByText('1 selected')).toBeVisible();
  release();
  await expect(page.locator('tbody tr')).toHaveCount(1);
  await page.locator('tbody .pick').first().check();
  await expect(page.getByText('1 selected')).toBeVisible();
});

test('work for the next frame is dropped when the page is left', async ({ page, server }) => {
  await page.addInitScript(() => {
    const callbacks: FrameRequestCallback[] = [];
    window.requestAnimationFrame = (callback) => callbacks.push(callback);
    Object.assign(window, { runFrames: () => callbacks.splice(0).forEach((callback) => callback(performance.now())) });
  });
  const { worker_id: id } = await makeWorker(server, 'ada');
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  await page.locator('tbody').getByRole('link', { name: 'ada' }).click();
  await expect(page).toHaveURL(new RegExp(`/admin/workers/${id}$`));
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('ada');
  await page.evaluate(() => (window as unknown as { runFrames(): void }).runFrames());
  await expect(page.locator('.is-live:visible').first()).toBeVisible();
});
