// Keys in the log.
import { expect, test } from '../fixtures';
import { startJob } from '../host';
import { live, signIn } from '../steps';

test('E leads from error to error, and Shift+E back', async ({ page, server }) => {
  test.setTimeout(90_000);
  const { host, offer } = await startJob(server);
  const lines = Array.from({ length: 2_000 }, (_, at) => `INFO step ${at + 1}`);
  for (const line of [300, 900, 1_700]) lines[line - 1] = `ValueError: in line ${line}`;
  await host.log(offer, `${lines.join('\n')}\n`);
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}/log?line=500`);
  await live(page);
  const row = (line: number) => page.locator(`#L${line}`);
  await expect(page.getByRole('link', { name: 'Go to the error' })).toHaveCount(0);
  await page.getByRole('log').focus();
  for (const [key, line] of [['Shift+E', 300], ['e', 900], ['e', 1_700], ['Shift+E', 900], ['e', 1_700], ['e', 300]] as const) {
    await page.keyboard.press(key);
    await expect(row(line)).toHaveClass(/is-chosen/);
    await expect(row(line)).toBeInViewport();
  }
  // While typing, it is a letter.
  const search = page.getByRole('searchbox', { name: 'Search the log' });
  await search.fill('');
  await search.press('e');
  await expect(search).toHaveValue('e');
  await expect(row(300)).toHaveClass(/is-chosen/);
});
