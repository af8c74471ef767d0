// Filters by time in the user's time zone, with and without JavaScript.
import { expect, test } from '../fixtures';
import { live, searchJobs, signIn, submit } from '../steps';

test.use({ timezoneId: 'Australia/Adelaide' });

test('days of a search and times of a filter are local, and addresses use UTC', async ({ page, server, context, javaScriptEnabled }) => {
  // Without scripts the browser cannot report its time zone.
  if (!javaScriptEnabled) await context.addCookies([{ name: 'time_zone', value: 'Australia/Adelaide', url: server.url }]);
  await signIn(page, server);
  await submit(server, 'digits');
  const day = (daysLater: number) =>
    new Intl.DateTimeFormat('sv-SE', { timeZone: 'Australia/Adelaide' }).format(Date.now() + daysLater * 86_400_000);
  for (const [query, rows] of [[`submitted:${day(0)}`, 1], [`submitted:${day(1)}`, 0], [`submitted<${day(0)}`, 0]] as const) {
    await page.goto('/jobs');
    if (javaScriptEnabled) await live(page);
    await searchJobs(page, query);
    await expect(page.getByText(rows ? '1 job' : 'No matching jobs', { exact: true })).toBeVisible();
    await expect(page.locator('table.jobs tbody tr')).toHaveCount(rows);
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
