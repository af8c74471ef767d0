// The log page, with and without JavaScript.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { startJob } from '../host';
import { signIn } from '../steps';

const HOSTILE = '<b onmouseover=alert(1)>bold</b> <script>alert(1)</script> \u202eright to left\u0007 javascript:alert(1)';

/** Returns a log of `lines` lines in the format of a trainer. */
function training(lines: number): string {
  return Array.from({ length: lines }, (_, at) => `2026-01-02 03:04:05 INFO step ${at + 1} loss=${(2 / Math.sqrt(at + 1)).toFixed(4)}\n`).join('');
}

test('a log can be read from any line on', async ({ page, server }) => {
  test.setTimeout(120_000);
  const { host, offer } = await startJob(server);
  const job = offer.job_id;
  await signIn(page, server);
  await page.goto(`/jobs/${job}/log`);
  await expect(page.getByText('No output yet.')).toBeVisible();
  const bar = 'progress 10%\rprogress 100%\r\n';
  const text = `${training(4_000)}${bar}\u001b[1;31mERROR\u001b[0m out of memory\n${HOSTILE}\n`;
  const end = await host.log(offer, text, 0);
  await host.log(offer, 'after the gap\n', end + 9_000, 9_000);
  await page.goto(`/jobs/${job}/log`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Log of digits');
  const log = page.getByRole('log');
  const row = (line: number) => log.locator(`#L${line}`);
  await expect(row(4_001)).toHaveText('4001progress 100%');
  await expect(row(4_002).locator('.ink-red')).toHaveText('ERROR');
  await expect(row(4_003)).toContainText('<script>alert(1)</script> \ufffdright to left\u2407 javascript:');
  await expect(row(4_005)).toContainText('8.8\u{a0}KiB missing');
  await expect(row(4_006)).toContainText('after the gap');
  await expectAccessible(page);
  await page.goto(`/jobs/${job}/log?attempt=1&line=1234-1236`);
  for (const line of [1_234, 1_235, 1_236]) await expect(row(line)).toHaveClass(/is-chosen/);
  await expect(row(1_234)).toContainText('step 1234 ');
  await expect(row(1_233)).not.toHaveClass(/is-chosen/);
  await expect(row(1_234).getByRole('link')).toHaveAttribute('href', `/jobs/${job}/log?attempt=1&line=1234`);
  await page.getByRole('textbox', { name: 'Go to line' }).fill('77');
  await page.getByRole('button', { name: 'Go', exact: true }).click();
  await expect(row(77)).toHaveClass(/is-chosen/);
  await expect(page).toHaveURL(/line=77/);
  await page.goBack();
  await expect(row(1_234)).toHaveClass(/is-chosen/);
  const download = await page.request.get(await page.getByRole('link', { name: 'Full log' }).getAttribute('href') ?? '');
  expect((await download.text()).split('\n')[4_005]).toBe('after the gap');
  await page.goto(`/jobs/${job}`);
  await page.getByRole('link', { name: 'Open log' }).click();
  await expect(row(4_006)).toBeVisible();
  if (test.info().project.use.javaScriptEnabled ?? true) return;
  // Without scripts the log is split into pages.
  await page.getByRole('link', { name: 'Earlier' }).click();
  await expect(row(3_607)).toBeVisible();
  await expect(row(3_807)).toHaveCount(0);
  await page.getByRole('link', { name: 'First lines' }).click();
  await expect(page.getByText('Lines 1 to 200 of 4,006')).toBeVisible();
});

test('matches are marked, and links lead from match to match', async ({ page, server }) => {
  test.setTimeout(120_000);
  const { host, offer } = await startJob(server);
  const job = offer.job_id;
  await host.log(offer, `${training(2_000)}\u001b[31mTraceback\u001b[0m (most recent call last):\nRuntimeError: CUDA out of memory\n`, 0);
  await signIn(page, server);
  await page.goto(`/jobs/${job}/log?line=1`);
  const log = page.getByRole('log');
  const search = page.getByRole('searchbox', { name: 'Search the log' });
  await search.fill('STEP 77');
  await search.press('Enter');
  await expect(page.locator('#L77')).toHaveClass(/is-chosen/);
  await expect(page.locator('#L77 mark')).toHaveText('step 77');
  await expect(page.getByRole('status').filter({ hasText: '1 of 11' })).toBeVisible();
  await page.getByRole('button', { name: 'Next match' }).click();
  await expect(page.locator('#L770')).toHaveClass(/is-chosen/);
  await expect(page).toHaveURL(/line=770&q=STEP/);
  await expect(page.getByText('2 of 11')).toBeVisible();
  await page.getByRole('button', { name: 'Previous match' }).click();
  await expect(page.locator('#L77')).toHaveClass(/is-chosen/);
  await page.goto(`/jobs/${job}/log?q=STEP&case=true`);
  await expect(page.getByText('No matches')).toBeVisible();
  await page.goto(`/jobs/${job}/log?q=%28&regex=true`);
  await expect(page.getByText('unclosed group')).toBeVisible();
  await expect(log).toContainText('RuntimeError');
  await page.goto(`/jobs/${job}/log?q=step+%5Cd%7B4%7D+&regex=true`);
  await expect(page.getByText('1 of 1,001')).toBeVisible();
  await expect(page.locator('#L1000')).toHaveClass(/is-chosen/);
  await page.getByRole('link', { name: 'Errors' }).click();
  await expect(page.locator('#L2001')).toHaveClass(/is-chosen/);
  await expect(page.locator('#L2001 mark')).toHaveText('Traceback');
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    await expect(page.locator('#L2001')).toBeVisible();
    await picture(page, `log-${scheme}-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }
  await page.getByRole('link', { name: 'Wrap lines' }).click();
  await expect(page).toHaveURL(/wrap=true/);
  await expect(page.locator('#L2001')).toBeVisible();
});
