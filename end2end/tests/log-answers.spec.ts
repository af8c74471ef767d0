// What a log answers: where the error is, what one rank has written, and where the run is tracked. With and without JavaScript.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { startJob } from '../host';
import { live, signIn } from '../steps';

const RUN = 'https://wandb.ai/ada/digits/runs/x1y2';
const HOSTILE = 'https://wandb.ai.evil.example/a/b/runs/c https://wandb.ai@evil.example/ javascript:alert(1) https://wandb.ai/"><script>alert(1)</script>';
const ERROR = 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.';

/** Returns a log that four ranks write in turns; the last of them fails in line 3,004. */
function logOfRanks(): string {
  const steps = Array.from({ length: 3_000 }, (_, at) => `[rank${at % 4}]: INFO step ${at + 1} loss=${(2 / Math.sqrt(at + 1)).toFixed(4)}`);
  const start = [`wandb: View run at \u001b[34m${RUN}\u001b[0m`, HOSTILE, 'TensorBoard 2.16 at http://localhost:6006/ (Press CTRL+C to quit)'];
  return [...start, ...steps, `[rank3]: ${ERROR}`, 'closing data loaders', ''].join('\n');
}

const pictures = [[1280, 'light'], [1280, 'dark'], [380, 'light'], [380, 'dark']] as const;

test('a failed log leads to its error, to the lines of a rank, and to the tracker', async ({ page, server, javaScriptEnabled }) => {
  test.setTimeout(180_000);
  const { host, offer } = await startJob(server);
  const job = offer.job_id;
  const error_line = 3_004;
  await host.log(offer, logOfRanks());
  await host.report(offer, 'failed', { error: ERROR, error_line, exit_code: 1 });
  await signIn(page, server);

  await page.goto(`/jobs/${job}`);
  const links = page.getByRole('list', { name: 'Links in the log' });
  await expect(links.getByRole('listitem')).toHaveCount(2);
  const run = links.getByRole('link');
  await expect(run).toHaveAttribute('href', RUN);
  await expect(run).toHaveAttribute('rel', /noopener noreferrer nofollow/);
  await expect(run).toHaveText('Weights & Biases x1y2');
  await expect(links).toContainText('TensorBoard http://localhost:6006/');
  for (const [width, colorScheme] of pictures) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await picture(page, `log-links-${colorScheme}-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize({ width: 1_280, height: 800 });
  await expectAccessible(page);

  const row = (line: number) => page.locator(`#L${line}`);
  await page.goto(`/jobs/${job}/log?line=1`);
  if (javaScriptEnabled) await live(page);
  await expect(row(error_line)).toHaveCount(0);
  await page.getByRole('link', { name: 'Go to the error' }).click();
  await expect(page).toHaveURL(new RegExp(`line=${error_line}#L${error_line}$`));
  await expect(row(error_line)).toHaveClass(/is-error/);
  await expect(row(error_line)).toHaveClass(/is-chosen/);
  await expect(row(error_line)).toBeInViewport();
  await expect(row(error_line)).toContainText(ERROR);
  for (const [width, colorScheme] of pictures) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await expect(row(error_line)).toBeVisible();
    await picture(page, `log-error-${colorScheme}-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    await expectAccessible(page);
  }
  await page.setViewportSize({ width: 1_280, height: 800 });

  await page.getByLabel('Rank', { exact: true }).selectOption('Rank 3');
  if (!javaScriptEnabled) await page.getByRole('button', { name: 'Go', exact: true }).first().click();
  await expect(page).toHaveURL(/rank=3/);
  const rows = page.locator('.log-row');
  await expect(rows).toHaveCount(200);
  await expect(rows.last()).toHaveText(`3004[rank3]: ${ERROR}`);
  await expect(rows.filter({ hasNotText: '[rank3]' })).toHaveCount(0);
  await page.getByRole('link', { name: 'Earlier' }).click();
  await expect(rows.last()).toContainText('[rank3]: INFO step 2204 ');
  await page.getByRole('link', { name: 'Later' }).click();
  await expect(rows.first()).toContainText('[rank3]: INFO step 2208 ');
  await page.getByRole('link', { name: 'First lines' }).click();
  await expect(rows.first()).toContainText('[rank3]: INFO step 4 ');
  await page.getByRole('link', { name: 'Wrap lines' }).click();
  await expect(page.getByRole('link', { name: 'Wrap lines' })).toHaveAttribute('aria-current', 'true');
  for (const [width, colorScheme] of pictures) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await picture(page, `log-rank-${colorScheme}-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    await expectAccessible(page);
  }
  await rows.nth(1).getByRole('link').click();
  await expect(row(11)).toHaveClass(/is-chosen/);
  await expect(row(12)).toContainText('[rank0]');
  await page.goto(`/jobs/${job}/log?rank=9`);
  await expect(page.getByText('No lines of rank 9 here.')).toBeVisible();
});

test('the logs of all jobs are searched, and each line leads to its log', async ({ page, server, javaScriptEnabled }) => {
  test.setTimeout(120_000);
  const { host, offer } = await startJob(server);
  const job = offer.job_id;
  await host.log(offer, `${'INFO step\n'.repeat(500)}\u001b[31mRuntimeError: NaN in \u202elayer 3\u001b[0m <script>alert(1)</script>\n${'nan again\n'.repeat(5)}`);
  await signIn(page, server);
  await page.goto('/jobs?q=config%3Adigits');
  if (javaScriptEnabled) await live(page);
  await page.getByRole('link', { name: 'Search logs' }).click();
  await expect(page.getByLabel('Jobs')).toHaveValue('config:digits');
  await expectAccessible(page);
  await page.getByLabel('Text in the log').fill('nan');
  await page.getByRole('button', { name: 'Search' }).click();
  const found = page.locator('.log-row');
  await expect(found).toHaveCount(3);
  await expect(found.first()).toContainText('501RuntimeError: NaN in \ufffdlayer 3 <script>alert(1)</script>');
  await expect(page.getByText('1 job searched')).toBeVisible();
  for (const [width, colorScheme] of pictures) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await picture(page, `log-search-${colorScheme}-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    await expectAccessible(page);
  }
  await page.setViewportSize({ width: 1_280, height: 800 });
  await page.getByLabel('Text in the log').fill('NAN');
  await page.getByLabel('Text in the log').press('Enter');
  await expect(page.getByText('No matches')).toBeVisible();
  await page.goBack();
  await found.nth(1).getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${job}/log\\?attempt=1&line=502&q=nan`));
  await expect(page.locator('#L502')).toHaveClass(/is-chosen/);
  await expect(page.locator('#L502 mark')).toHaveText('nan');
  await page.goto('/jobs/logs?q=%28&regex=true');
  await expect(page.getByText('unclosed group')).toBeVisible();
});

test('the arrival of each line is shown on request', async ({ page, server, javaScriptEnabled }) => {
  test.setTimeout(120_000);
  const { host, offer } = await startJob(server);
  const job = offer.job_id;
  const end = await host.log(offer, `${'[rank0]: INFO step\n'.repeat(300)}wide ${'text '.repeat(60)}\n`);
  await host.log(offer, 'after the gap\n', end + 9_000, 9_000);
  await signIn(page, server);
  await page.goto(`/jobs/${job}/log`);
  if (javaScriptEnabled) await live(page);
  const times = page.locator('.log-row time');
  await expect(page.locator('#L304')).toBeVisible();
  await expect(times).toHaveCount(0);
  const toggle = page.getByRole('link', { name: 'Arrival times' });
  await toggle.click();
  await expect(page).toHaveURL(/times=true/);
  await expect(page.locator('#L304 time')).toHaveText(/^\s*\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$/);
  await expect(toggle).toHaveAttribute('aria-current', 'true');
  for (const [width, colorScheme] of pictures) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await expect(page.locator('#L304')).toBeVisible();
    await picture(page, `log-times-${colorScheme}-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    await expectAccessible(page);
  }
  await toggle.click();
  await expect(page).not.toHaveURL(/times=true/);
  await expect(page.locator('#L304')).toBeVisible();
  await expect(times).toHaveCount(0);
  await page.goto(`/jobs/${job}/log?rank=0&times=true`);
  await expect(times).toHaveCount(200);
});
