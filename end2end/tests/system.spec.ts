// The configuration and state of the server, without secrets.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn } from '../steps';

test('the system page shows each setting and its source', async ({ page, server }) => {
  await signIn(page, server);
  await page.getByRole('link', { name: 'System' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('System');
  await expect(page.getByRole('region', { name: 'Readiness' })).toContainText('migrations');
  const database = page.getByRole('region', { name: 'Database' });
  await expect(database).toContainText('SQLite');
  await expect(database.getByRole('listitem'), 'the servers of the database').toContainText(/this one.*Version \d+\.\d+\.\d+/is);
  await expect(page.getByRole('region', { name: 'Limits' })).toContainText('2\u{a0}min');
  const row = (flag: string) => page.getByRole('row').filter({ has: page.getByText(flag, { exact: true }) });
  await expect(row('--data-dir')).toContainText(server.dataDir);
  await expect(row('--data-dir')).toContainText('Flag');
  await expect(row('--local')).toContainText('Environment');
  await expect(row('--rate-limit')).toContainText('Default');
  await expect(row('--bootstrap-admin-token')).toContainText('not shown');
  expect(await page.content()).not.toContain(server.adminToken);
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow, 'wider than its window').toBeLessThanOrEqual(0);
    await picture(page, `system-${scheme}-${width}`);
    await expectAccessible(page);
  }
});

test('sizes have the same units as the settings', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/admin/system');
  const row = (flag: string) => page.getByRole('row').filter({ has: page.getByText(flag, { exact: true }) });
  await expect(row('--log-max-size')).toContainText('64GiB');
  await expect(page.getByRole('region', { name: 'Limits' }).locator('div').filter({ hasText: 'Max log size' })).toContainText(/64\sGiB$/);
  await expect(page.getByRole('region', { name: 'Storage' })).toContainText(/\d\s[KMGT]iB free of/);
  expect(await page.getByRole('main').innerText()).not.toMatch(/\d\s*[kKMGT]B\b/);
});
