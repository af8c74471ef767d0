// The usage page, with and without JavaScript; it is server-rendered.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { startJob } from '../host';
import { signIn, signInWith } from '../steps';
import type { Page } from '@playwright/test';

async function expectFits(page: Page): Promise<void> {
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow, 'wider than its window').toBeLessThanOrEqual(0);
}

test('the page says that nothing has run yet', async ({ page, server }) => {
  await signIn(page, server);
  await page.getByRole('link', { name: 'Usage' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Usage');
  await expect(page.getByText('No usage in this period')).toBeVisible();
  await picture(page, 'usage-empty-1280');
  await expectAccessible(page);
});

test('usage is shown by period and group, which are in the address', async ({ page, server }) => {
  await signIn(page, server);
  const { host } = await startJob(server);
  await page.goto('/usage');
  const tile = (name: string) => page.getByRole('listitem').filter({ hasText: name });
  await expect(tile('Jobs').filter({ hasNotText: 'Idle' }).last()).toContainText('1 attempt');
  await expect(tile('Allocation')).toContainText('%');
  const groups = page.getByRole('table', { name: /^Group by/ });
  await expect(groups.getByRole('row', { name: /^admin/ })).toContainText(/(9\d(\.\d)?|100)%/);
  await page.getByRole('link', { name: '30 days' }).click();
  await page.getByRole('navigation', { name: 'Group by' }).getByRole('link', { name: 'Worker' }).click();
  await expect(page).toHaveURL(/\?days=30&by=worker/);
  await expect(groups.getByRole('link', { name: 'gpu-1', exact: true })).toHaveAttribute('href', /^\/admin\/workers\/w_/);
  await expect(groups.getByRole('link', { name: /^Jobs: \d+ · gpu-1$/ })).toHaveAttribute('href', /^\/jobs\?worker=w_/);
  await expect(page.getByRole('table', { name: /Share of the available GPUs/ }).getByRole('row')).toHaveCount(8);
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    await expectFits(page);
    await picture(page, `usage-${scheme}-${width}`);
    await expectAccessible(page, ['landmark-unique']);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  const csv = await page.request.get((await page.getByRole('link', { name: 'Export CSV' }).getAttribute('href'))!);
  expect(await csv.text()).toMatch(/^worker,gpu_hours,run_hours,jobs,attempts\r\ngpu-1,/);
  await page.getByLabel('From').fill('2020-01-01');
  await page.getByLabel('To', { exact: true }).fill('2020-01-07');
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(page).toHaveURL(/from=2020-01-01&to=2020-01-07/);
  await expect(page.getByText('No usage in this period')).toBeVisible();
  await page.goBack();
  await expect(groups).toBeVisible();
  host.close();
});

test.describe('in the reader’s time zone', () => {
  test.use({ timezoneId: 'Australia/Adelaide' });

  test('days and hours use the reader’s time zone', async ({ page, server, context, javaScriptEnabled }) => {
    // Without scripts the browser cannot report its time zone.
    if (!javaScriptEnabled) await context.addCookies([{ name: 'time_zone', value: 'Australia/Adelaide', url: server.url }]);
    await signIn(page, server);
    const { host } = await startJob(server);
    await page.goto('/usage');
    await expect(page.getByRole('table', { name: /by hour \(Australia\/Adelaide\)\.$/ }).getByRole('row')).toHaveCount(8);
    await expect(page.locator('.day-bars figcaption')).toContainText('Australia/Adelaide');
    await page.getByText('Show table').click();
    await expect(page.getByRole('columnheader', { name: 'Day (Australia/Adelaide)' })).toBeVisible();
    await context.addCookies([{ name: 'zone', value: 'utc', url: server.url }]);
    await page.goto('/usage');
    await expect(page.locator('.day-bars figcaption')).toContainText('UTC');
    host.close();
  });
});

test('users who see only their own jobs see only their own usage', async ({ page, server }) => {
  const { host } = await startJob(server);
  await signInWith(page, server, 'eve', ['job.view.own']);
  await page.goto('/usage');
  await expect(page.getByText('No usage in this period')).toBeVisible();
  await expect(page.getByText('Allocation')).toHaveCount(0);
  await expect(page.getByText('Idle with jobs queued')).toHaveCount(0);
  host.close();
});
