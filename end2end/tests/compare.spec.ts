// Comparing jobs: from the list to what differs, with and without JavaScript.
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host, sample } from '../host';
import { live, signIn, signInAs, waitForJob } from '../steps';
import type { Page } from '@playwright/test';

const HOSTILE = '<script>alert(1)</script>';
const LONG = 'w'.repeat(128); // the longest name
const RTL = 'تجربة معدل التعلم';

const scripts = () => test.info().project.use.javaScriptEnabled ?? true;

interface Training { name?: string; overrides?: object; losses?: number[]; metrics?: Record<string, number>; firstStep?: number }

/** Submits a job, and runs it on the host to its end. */
async function train(server: Server, host: Host, { name, overrides = {}, losses = [], metrics = {}, firstStep = 1 }: Training): Promise<string> {
  const body = JSON.stringify({ config_name: 'digits', target: 'worker', name, overrides });
  const response = await server.api('/api/queue/submit', { method: 'POST', body });
  expect(response.status, await response.clone().text()).toBe(201);
  const { job_id: id } = await response.json();
  const offer = await host.run();
  const at = (index: number) => new Date(Date.now() - (losses.length - index) * 1_000).toISOString();
  const points = losses.map((loss, index) => ({ step: firstStep + index * 10, at: at(index), loss, learning_rate: 0.001, metrics }));
  if (points.length > 0) await host.progress(offer, points);
  await host.report(offer, 'completed');
  await waitForJob(server, id, 'completed');
  return id;
}

const falling = (start: number, count = 40) => Array.from({ length: count }, (_, step) => start / (1 + step / 10) + Math.sin(step) * 0.02);

const address = (ids: string[]) => `/jobs/compare?${ids.map((id) => `id=${id}`).join('&')}`;
const differences = (page: Page) => page.getByRole('table', { name: 'Configuration differences' });
const finals = (page: Page) => page.getByRole('table', { name: 'Final metrics' });
const chart = (page: Page, name: RegExp) => page.getByRole('img', { name }).first();

const parallel = (page: Page) => page.getByRole('region', { name: 'Parallel coordinates' });
/** The parallel coordinates, of which only the width that fits is visible. */
const plot = (page: Page) => parallel(page).getByRole('img', { name: /^Parallel coordinates: / });

async function chooseMetric(page: Page, name: string): Promise<void> {
  if (scripts()) await live(page); // only then a choice is noticed
  await parallel(page).getByRole('combobox', { name: 'Metric' }).selectOption(name);
  if (!scripts()) await parallel(page).getByRole('button', { name: 'Apply' }).click();
}

async function expectFits(page: Page, name: string): Promise<void> {
  for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [380, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await picture(page, `${name}-${scheme}-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth), `${name} fits`).toBeLessThanOrEqual(width);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
}

test('three selected jobs are compared: what differs first, then curves and final values', async ({ page, server }) => {
  test.setTimeout(120_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const slow = await train(server, host, { name: 'slow', overrides: { learning_rate: 1e-4 }, losses: falling(3), metrics: { accuracy: 0.5 } });
  const good = await train(server, host, { name: 'good', overrides: { learning_rate: 1e-3 }, losses: falling(1), metrics: { accuracy: 0.9 } });
  await train(server, host, { name: 'fast', overrides: { learning_rate: 1e-2 }, losses: falling(2), metrics: { accuracy: 0.7 } });
  await signIn(page, server);
  await page.goto('/jobs');
  if (scripts()) await live(page);
  for (const name of ['slow', 'good', 'fast']) await page.getByRole('checkbox', { name: new RegExp(`^Select ${name} `) }).check();
  await expect(page.locator('.pick-offers')).toBeVisible();
  await picture(page, 'jobs-picked');
  await page.locator('.pick-offers').getByRole('button', { name: 'Compare' }).click();

  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Compare jobs');
  await expect(page).toHaveURL(/\/jobs\/compare\?/);
  const first = differences(page).getByRole('row').nth(1);
  await expect(first.getByRole('rowheader')).toHaveText('learning_rate');
  await expect(first.getByRole('cell')).toHaveText(['0.01', '0.001', '0.0001']);
  await expect(differences(page).getByRole('row'), 'nothing else differs').toHaveCount(2);
  await expect(page.locator('summary', { hasText: /^Same in all: \d+ values$/ })).toBeVisible();
  await expect(chart(page, /^Loss: fast first .*good first .*slow first/)).toBeVisible();
  const loss = finals(page).getByRole('row', { name: /^Loss/ });
  await expect(loss.getByRole('cell').nth(1), 'the lowest loss').toContainText('best');
  await expect(finals(page).getByText('best')).toHaveCount(2);
  await expect(finals(page).getByRole('row', { name: /^accuracy/ }).getByRole('cell')).toHaveText(['0.7000', '0.9000 best', '0.5000']);
  await expectFits(page, 'compare');
  await page.getByRole('navigation', { name: 'Horizontal axis' }).getByRole('link', { name: 'Time' }).click();
  await expect(page).toHaveURL(/x=time/);
  await expect(chart(page, /^Loss: fast/)).toContainText(' s');

  // A job is removed, and the address shows the same to another user.
  await page.getByRole('link', { name: 'Remove fast from the comparison' }).click();
  await expect(differences(page).getByRole('columnheader')).toHaveText(['Setting', 'good', 'slow']);
  await expect(page).toHaveURL((url) => url.searchParams.get('x') === 'time' && url.searchParams.getAll('id').join() === `${good},${slow}`);
  const shared = page.url();
  await page.goto('about:blank'); // no request is under way that would be rejected
  await page.context().clearCookies();
  await signInAs(page, server, 'vic', 'viewer');
  await page.goto(shared);
  await expect(differences(page).getByRole('columnheader')).toHaveText(['Setting', 'good', 'slow']);
  await expect(finals(page).getByText('best')).toHaveCount(2);
  host.close();
});

test('a viewer can select jobs to compare, and equal configurations have no differences', async ({ page, server }) => {
  test.setTimeout(90_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const ids = [await train(server, host, { name: 'twin' }), await train(server, host, { name: 'twin' })];
  await signInAs(page, server, 'vic', 'viewer');
  await page.goto('/jobs');
  if (scripts()) await live(page);
  for (const box of await page.locator('tbody .pick').all()) await box.check();
  await expect(page.locator('.pick-offers').getByRole('button')).toHaveText(['Compare', 'Clear']);
  await page.locator('.pick-offers').getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByText('No differences: the configurations have the same values.')).toBeVisible();
  await expect(page.getByText('No metrics yet.')).toBeVisible();
  await expect(finals(page)).toHaveCount(0);
  await expect(parallel(page), 'nothing differs').toHaveCount(0);
  // The names are equal, so the IDs distinguish them.
  const links = page.locator('.compared-jobs .row-link');
  await expect(links).toHaveText(ids.reverse().map((id) => new RegExp(`^twin \\(j_…${id.slice(-6)}\\)$`)));
  await expectFits(page, 'compare-same');
  host.close();
});

test('hostile names, jobs that do not exist, and addresses with too few jobs', async ({ page, server }) => {
  test.setTimeout(120_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const nan = { overrides: { note: `${HOSTILE} \u202e${'x'.repeat(300)}`, nested: { list: [1, { deep: null }] } } };
  const ids = [
    await train(server, host, { name: HOSTILE, ...nan, losses: [1, 0.5], metrics: { '<b>val_loss</b>': 2 }, firstStep: 1_000_000_000 }),
    await train(server, host, { name: LONG, losses: [1, 2], metrics: { '<b>val_loss</b>': 1 } }),
    await train(server, host, { name: RTL, losses: [3] }),
  ];
  await signIn(page, server);
  await page.goto(address([...ids, 'j_deleted', HOSTILE].map(encodeURIComponent)));
  await expect(page.getByText(`Not compared, because they do not exist or you may not see them: j_deleted, ${HOSTILE}`)).toBeVisible();
  await expect(differences(page).getByRole('columnheader')).toHaveText(['Setting', HOSTILE, LONG, RTL]);
  const note = differences(page).getByRole('row').filter({ hasText: 'note' }).getByRole('cell');
  await expect(note.first()).toContainText(`${HOSTILE} \\u{202e}xxx`);
  await expect(note.first()).toContainText('…');
  await expect(note.nth(1)).toHaveText('not set');
  await expect(differences(page).getByRole('row').filter({ hasText: 'nested.list' })).toContainText('[1,{"deep":null}]');
  await expect(finals(page).getByRole('row', { name: /^<b>val_loss/ }).getByRole('cell')).toHaveText(['2.00', /^1\.00\s*best$/, '–']);
  await expect(plot(page)).toHaveAttribute('aria-label', 'Parallel coordinates: nested.list, note, Loss');
  await expect(plot(page).locator('.parallel-line title').first()).toContainText(`${HOSTILE}: nested.list [1,{"deep":null}], note ${HOSTILE} \\u{202e}xxx`);
  await chooseMetric(page, '<b>val_loss</b>');
  await expect(page).toHaveURL((url) => url.searchParams.get('parallel') === '<b>val_loss</b>');
  await expect(plot(page)).toHaveAttribute('aria-label', 'Parallel coordinates: nested.list, note, <b>val_loss</b>');
  await expectFits(page, 'compare-hostile');
  await page.getByRole('link', { name: 'Compare without them' }).click();
  await expect(page).toHaveURL((url) => url.searchParams.getAll('id').join() === ids.join());
  await expect(page.getByText('Not compared')).toHaveCount(0);
  for (const search of ['', `?id=${ids[0]}`, '?id=', `?ids=${Array.from({ length: 21 }, (_, id) => `j_${id}`)}`]) {
    await page.goto(`/jobs/compare${search}`);
    await expect(page.getByText('Select 2 to 20 jobs')).toBeVisible();
  }
  await picture(page, 'compare-none');
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Select jobs' }).click();
  await expect(page).toHaveURL(`${server.url}/jobs`);
  host.close();
});

test('parallel coordinates show which values lead to a good metric, which is chosen in the address', async ({ page, server }) => {
  test.setTimeout(120_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const ids = [
    await train(server, host, { name: 'slow', overrides: { learning_rate: 1e-4, optimizer: 'lion' }, losses: [2, 0.5], metrics: { accuracy: 0.5 } }),
    await train(server, host, { name: 'good', overrides: { learning_rate: 1e-3, optimizer: 'adamw' }, losses: [2, 0.25], metrics: { accuracy: 0.9 } }),
    await train(server, host, { name: 'fast', overrides: { learning_rate: '0.01' }, losses: [2, 1] }),
  ];
  await signIn(page, server);
  await page.goto(`${address(ids)}&x=time`);
  if (scripts()) await live(page);
  await expect(plot(page)).toHaveAttribute('aria-label', 'Parallel coordinates: learning_rate, optimizer, Loss');
  const labels = plot(page).locator('.parallel-axes .tick-text');
  await expect(labels).toHaveText(['Log', '0.0001', '0.001', '0.01', 'adamw', 'lion', '–', '0.2500', '0.5000', '1.00']);
  const lines = plot(page).locator('.parallel-line');
  await expect(lines.locator('title')).toHaveText([
    'slow: learning_rate 0.0001, optimizer lion, Loss 0.5000',
    'good: learning_rate 0.001, optimizer adamw, Loss 0.2500',
    'fast: learning_rate 0.01, optimizer –, Loss 1.00',
  ]);
  const path = (number: number) => lines.nth(number).locator('.curve');
  await expect(path(1), 'in the middle of the logarithmic axis').toHaveAttribute('d', /^M\S+ 164\.0h0/);
  await expect(path(2), 'a missing value is below the axis').toHaveAttribute('d', /^M\S+ 44\.0h0L\S+ 310\.0L\S+ 44\.0$/);
  await expect(path(2)).toHaveClass('curve series-3');
  await expect(parallel(page).getByText('lower is better')).toBeVisible();
  const legend = parallel(page).getByRole('listitem');
  await expect(legend).toHaveText([/^slow\s*0\.5000$/, /^good\s*0\.2500\s*best$/, /^fast\s*1\.00$/]);
  await expectFits(page, 'compare-parallel');

  await chooseMetric(page, 'accuracy');
  const chosen = (url: URL) => url.searchParams.get('parallel') === 'accuracy' && url.searchParams.get('x') === 'time';
  await expect(page).toHaveURL((url) => chosen(url) && url.searchParams.getAll('id').join() === ids.join());
  await expect(plot(page)).toHaveAttribute('aria-label', 'Parallel coordinates: learning_rate, optimizer, accuracy');
  await expect(legend).toHaveText([/^slow\s*0\.5000$/, /^good\s*0\.9000\s*best$/, /^fast\s*–$/]);
  await expect(parallel(page).getByText('higher is better')).toBeVisible();
  await page.reload();
  await expect(parallel(page).getByRole('combobox', { name: 'Metric' })).toHaveValue('accuracy');
  await expect(legend.nth(1)).toContainText('0.9000');
  await page.getByRole('link', { name: 'Remove fast from the comparison' }).click();
  await expect(page).toHaveURL((url) => chosen(url) && url.searchParams.getAll('id').length === 2);
  await expect(lines).toHaveCount(2);
  host.close();
});

test('parallel coordinates have at most 12 settings and scroll in their own box', async ({ page, server }) => {
  test.setTimeout(90_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const settings = (value: number) => Object.fromEntries(Array.from({ length: 15 }, (_, index) => [`validation_guidance_${index + 10}`, value]));
  const ids = [
    await train(server, host, { name: 'one', overrides: { ...settings(1), note: 'one' }, losses: [1] }),
    await train(server, host, { name: 'two', overrides: { ...settings(2), note: 'two' }, losses: [2] }),
  ];
  await signIn(page, server);
  await page.goto(address(ids));
  await expect(plot(page)).toHaveAttribute('aria-label', /: validation_guidance_10, .*, validation_guidance_21, Loss$/);
  await expect(parallel(page).getByText('4 more settings differ; they are in the table above.')).toBeVisible();
  await expect(parallel(page).getByRole('combobox'), 'two metrics').toContainText('Learning rate');
  await expectFits(page, 'compare-parallel-many');
  await page.setViewportSize({ width: 380, height: 900 });
  const box = parallel(page).getByRole('group', { name: 'Parallel coordinates' });
  expect(await box.evaluate((box) => box.scrollWidth - box.clientWidth)).toBeGreaterThan(800);
  host.close();
});

test('samples of the same prompt are in one row', async ({ page, server }) => {
  test.setTimeout(90_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const ids: string[] = [];
  for (const name of ['one', 'two']) {
    const { job_id: id } = await (await server.api('/api/queue/submit', { method: 'POST', body: JSON.stringify({ config_name: 'digits', target: 'worker', name }) })).json();
    const offer = await host.run();
    for (const step of [100, 200, 300, 400]) {
      for (const prompt of name === 'one' ? ['cat', 'dog'] : ['cat']) {
        await host.file(offer, `samples/step_${step}_${prompt}.png`, 'sample', sample(step / 400, prompt.length + ids.length));
      }
    }
    await host.report(offer, 'completed');
    await waitForJob(server, id, 'completed');
    ids.push(id);
  }
  await signIn(page, server);
  await page.goto(address(ids));
  const samples = page.getByRole('table', { name: 'Samples of the last steps' });
  await expect(samples.getByRole('rowheader').filter({ hasText: 'Step' })).toHaveText(['Step 400', 'Step 300', 'Step 200']);
  const row = (name: string) => samples.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) }).first();
  await expect(row('cat').getByRole('img')).toHaveCount(2);
  await expect(row('dog').getByRole('img')).toHaveCount(1);
  await expect(samples.getByRole('link', { name: 'All samples: two' })).toHaveAttribute('href', `/jobs/${ids[1]}?show=samples`);
  await expectFits(page, 'compare-samples');
  host.close();
});

test('twenty jobs have distinguishable lines', async ({ page, server }) => {
  test.setTimeout(180_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const ids: string[] = [];
  const metrics = Object.fromEntries(Array.from({ length: 14 }, (_, index) => [`metric_${index}`, index]));
  for (let number = 1; number <= 20; number += 1) {
    ids.push(await train(server, host, { name: `run ${number}`, overrides: { seed: number }, losses: falling(number / 4, 500), metrics: number === 1 ? metrics : {} }));
  }
  await signIn(page, server);
  await page.goto(`${address(ids)}&smooth=0`);
  await expect(page.locator('.compared-jobs > li')).toHaveCount(20);
  const keys = await page.locator('.compared-jobs .legend-key path').evaluateAll((paths) => paths.map((path) => {
    const style = getComputedStyle(path);
    return `${style.stroke} ${style.strokeDasharray}`;
  }));
  expect(new Set(keys).size).toBe(20);
  await expect(page.getByRole('figure')).toHaveCount(12);
  await expectFits(page, 'compare-20');
  await page.getByRole('link', { name: 'Show all 17 charts' }).click();
  await expect(page.getByRole('figure')).toHaveCount(17);
  await expect(page.getByRole('link', { name: 'Show fewer charts' })).toBeVisible();
  host.close();
});
