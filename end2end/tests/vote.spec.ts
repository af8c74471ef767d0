// The blind vote on samples: from the comparison of jobs to the metric `vote`, with and without JavaScript.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host, sample } from '../host';
import { signIn, signInAs, waitForJob } from '../steps';

const NAMES = ['aurora', 'borealis'] as const;
/** Three pairs: the owl is only in one job. */
const SAMPLES = { aurora: ['100_cat', '200_cat', '200_dog', '200_owl'], borealis: ['100_cat', '200_cat', '200_dog'] };

const A = 'A is better';
const B = 'B is better';
const SAME = 'No difference';

/** Runs a job that uploads these samples, and returns its ID. */
async function train(server: Server, host: Host, name: string, samples: string[]): Promise<string> {
  const body = JSON.stringify({ config_name: 'digits', target: 'worker', name });
  const { job_id: id } = await (await server.api('/api/queue/submit', { method: 'POST', body })).json();
  const offer = await host.run();
  for (const [seed, file] of samples.entries()) {
    await host.file(offer, `samples/step_${file}.png`, 'sample', sample(parseInt(file, 10) / 200, seed + name.length));
  }
  await host.report(offer, 'completed');
  await waitForJob(server, id, 'completed');
  return id;
}

async function trainBoth(server: Server, samples: Record<(typeof NAMES)[number], string[]>): Promise<string[]> {
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const ids = [await train(server, host, NAMES[0], samples.aurora), await train(server, host, NAMES[1], samples.borealis)];
  host.close();
  return ids;
}

const query = (ids: string[]) => ids.map((id) => `id=${id}`).join('&');
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const results = (page: Page) => page.getByRole('table', { name: 'Votes' });
const finals = (page: Page) => page.getByRole('table', { name: 'Final metrics' });

async function expectFits(page: Page, name: string): Promise<void> {
  for (const width of [1280, 380]) {
    await page.setViewportSize({ width, height: 900 });
    await picture(page, `${name}-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth), `${name} fits`).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** Expects a pair of images without the names of their jobs; returns the number of the job that is shown as A. */
async function expectPair(page: Page, ids: string[], number: number): Promise<number> {
  await expect(page.locator('.vote .panel-note')).toHaveText(new RegExp(`^(cat · step [12]00|dog · step 200) · ${number} of 3$`));
  for (const label of ['Sample A', 'Sample B']) {
    const image = page.getByRole('img', { name: label });
    await expect.poll(() => image.evaluate((img: HTMLImageElement) => img.naturalWidth), `${label} is loaded`).toBe(128);
  }
  const html = await page.content();
  for (const name of NAMES) expect(html, 'the document does not name the jobs').not.toContain(name);
  const left = await page.locator('.vote [name=one]').inputValue();
  const right = await page.locator('.vote [name=other]').inputValue();
  expect([left, right].sort()).toEqual([...ids].sort());
  return ids.indexOf(left);
}

/** Adds a vote to the points of both jobs: a tie is half a point. */
function count(points: number[], left: number, choice: string): void {
  const [winner, loser] = choice === B ? [1 - left, left] : [left, 1 - left];
  points[winner]! += choice === SAME ? 0.5 : 1;
  points[loser]! += choice === SAME ? 0.5 : 0;
}

async function expectShares(page: Page, points: number[], votes: number): Promise<void> {
  await expect(page.getByRole('heading', { name: 'You have voted on all pairs of samples.' })).toBeVisible();
  for (const [index, name] of NAMES.entries()) {
    const row = results(page).getByRole('row').filter({ has: page.getByRole('link', { name }) });
    await expect(row.getByRole('cell')).toHaveText([`${Math.round((points[index]! / votes) * 100)}%`, `${votes}`]);
  }
}

/** Moves the focus to a button by the Tab key. */
async function tabTo(page: Page, name: string): Promise<void> {
  const target = button(page, name);
  await expect(target).toBeVisible();
  for (let presses = 0; presses < 60; presses += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  await expect(target).toBeFocused();
}

test('two users vote without knowing the jobs, and the share of votes is a metric', async ({ page, server }) => {
  test.setTimeout(120_000);
  const ids = await trainBoth(server, SAMPLES);
  const points = [0, 0];
  await signIn(page, server);
  await page.goto(`/jobs/compare?${query(ids)}`);
  await expect(finals(page)).toHaveCount(0);
  await page.getByRole('link', { name: 'Blind vote' }).click();
  await expect(page).toHaveURL(`${server.url}/jobs/compare/vote?${query(ids)}`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Blind vote');
  await expectPair(page, ids, 1);
  await expectFits(page, 'vote');
  for (const [index, choice] of [A, SAME, B].entries()) {
    count(points, await expectPair(page, ids, index + 1), choice);
    await button(page, choice).click();
  }
  await expectShares(page, points, 3);
  await expectFits(page, 'vote-result');

  // Another user votes by keyboard only.
  await page.goto('about:blank'); // no request is under way that would be rejected
  await page.context().clearCookies();
  await signInAs(page, server, 'vic', 'viewer');
  await page.goto(`/jobs/compare/vote?${query(ids)}`);
  for (let number = 1; number <= 3; number += 1) {
    const left = await expectPair(page, ids, number);
    const choice = left === 0 ? A : B; // all for the first job
    count(points, left, choice);
    await tabTo(page, choice);
    await page.keyboard.press(number === 2 ? 'Space' : 'Enter');
  }
  await expectShares(page, points, 6);

  await page.getByRole('link', { name: 'Back to the comparison' }).click();
  const [high, low] = [(points[0]! / 6).toFixed(4), (points[1]! / 6).toFixed(4)];
  await expect(finals(page).getByRole('row', { name: /^vote/ }).getByRole('cell')).toHaveText([new RegExp(`^${high}\\s*best$`), low]);
  const jobs = page.locator('table.jobs tbody tr');
  await page.goto('/jobs?q=metric.vote%3E0.5&columns=status,metric.vote');
  await expect(page.locator('table.jobs thead th').filter({ hasText: /^vote$/ })).toBeVisible();
  await expect(jobs).toHaveCount(1);
  await expect(jobs).toContainText('aurora');
  await expect(jobs).toContainText(high);
  for (const [sort, order] of [['metric.vote', ['borealis', 'aurora']], ['-metric.vote', NAMES]] as const) {
    await page.goto(`/jobs?sort=${sort}&columns=status,metric.vote`);
    await expect(jobs).toHaveText(order.map((name) => new RegExp(name)));
  }
});

test('a vote that the page does not offer is rejected with an error', async ({ page, server }) => {
  test.setTimeout(60_000);
  const ids = await trainBoth(server, SAMPLES);
  await signIn(page, server);
  for (const [field, value, message] of [
    ['step', '4oo', /^step must be 0 to \d+\.$/],
    ['step', '300', /^sample must be a sample of which both jobs have an image at step 300;/],
    ['sample', 'owl', /^sample must be a sample of which both jobs have an image at step \d+;/],
  ] as const) {
    await page.goto(`/jobs/compare/vote?${query(ids)}`);
    await page.locator(`.vote [name=${field}]`).evaluate((input: HTMLInputElement, changed) => { input.value = changed; }, value);
    await button(page, SAME).click();
    await expect(page.getByRole('alert').getByText(message)).toBeVisible();
    await expectPair(page, ids, 1);
  }
  await expectFits(page, 'vote-error');
});

test('without samples of the same prompt and step there is nothing to vote on', async ({ page, server }) => {
  test.setTimeout(60_000);
  const ids = await trainBoth(server, { aurora: ['100_cat', '200_dog'], borealis: ['200_cat'] });
  await signIn(page, server);
  await page.goto(`/jobs/compare/vote?${query(ids)}`);
  await expect(page.getByText('No samples to vote on')).toBeVisible();
  await expect(button(page, A)).toHaveCount(0);
  await expectFits(page, 'vote-none');
  await page.getByRole('link', { name: 'Back to the comparison' }).click();
  await expect(page).toHaveURL(`${server.url}/jobs/compare?${query(ids)}`);
  for (const search of ['', `?id=${ids[0]}`]) {
    await page.goto(`/jobs/compare/vote${search}`);
    await expect(page.getByText('Select 2 to 20 jobs')).toBeVisible();
  }
});
