// Filters by time in the user's time zone, with and without JavaScript.
import { expect, test } from '../fixtures';
import { live, signIn } from '../steps';

test.use({ timezoneId: 'Australia/Adelaide' });

test('times are entered in local time, and addresses use UTC', async ({ page, server, context, javaScriptEnabled }) => {
  // Without scripts the browser cannot report its time zone.
  if (!javaScriptEnabled) await context.addCookies([{ name: 'time_zone', value: 'Australia/Adelaide', url: server.url }]);
  await signIn(page, server);
  for (const [typed, address, chip] of [
    ['2020-01-01T00:00', '2019-12-31T13%3A30%3A00.000Z', '1 Jan 2020, 00:00:00 UTC+10:30'],
    ['2020-07-01T00:00', '2020-06-30T14%3A30%3A00.000Z', '1 Jul 2020, 00:00:00 UTC+09:30'],
  ] as const) {
    await page.goto('/jobs');
    if (javaScriptEnabled) await live(page);
    const before = page.getByLabel('Submitted before (Australia/Adelaide)');
    await before.fill(typed);
    await page.getByRole('button', { name: 'Filter' }).click();
    await expect(page).toHaveURL(`${server.url}/jobs?until=${address}`);
    await expect(page.getByText('No matching jobs')).toBeVisible();
    await expect(before).toHaveValue(typed);
    await expect(page.getByRole('link', { name: `Remove filter Submitted before: ${chip}` })).toBeVisible();
  }
  await page.goto('/admin/audit');
  await page.getByLabel('To (Australia/Adelaide)').fill('2020-07-01T00:00');
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(page).toHaveURL(`${server.url}/admin/audit?until=2020-06-30T14%3A30%3A00.000Z`);
  await expect(page.getByLabel('To (Australia/Adelaide)')).toHaveValue('2020-07-01T00:00');
  await context.addCookies([{ name: 'zone', value: 'utc', url: server.url }]);
  await page.reload();
  await expect(page.getByLabel('To (UTC)')).toHaveValue('2020-06-30T14:30');
});
