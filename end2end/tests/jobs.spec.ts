// Jobs: the list, the views of a job, why it is pending, and actions on it. With and without JavaScript.
import { readFileSync } from 'node:fs';
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host, startJob, sample } from '../host';
import { waitForJob, makeWorker, registerGpus, searchJobs, signIn, signInWith, submit } from '../steps';

/** A submit with all fields, none of them at its default. A test of the server writes it. */
const EXAMPLE = JSON.parse(readFileSync(`${__dirname}/../submit-example.json`, 'utf8')) as Record<string, unknown> & { secrets: string[]; team: string };

/** Markup that would run a script if it were not escaped. */
const HOSTILE = `<img src=x onerror=alert(1)>`;

async function submitWith(server: Server, more: object): Promise<string> {
  const response = await server.api('/api/queue/submit', { method: 'POST', body: JSON.stringify({ config_name: 'digits', ...more }) });
  expect(response.status, await response.clone().text()).toBe(201);
  return (await response.json()).job_id;
}

test('the list shows the requirements of each job, and only the permitted actions', async ({ page, server }) => {
  test.setTimeout(90_000);
  await signIn(page, server);
  await page.goto('/jobs');
  await expect(page.getByText('No jobs yet')).toBeVisible();
  await picture(page, 'jobs-empty');
  const first = await submitWith(server, { gpu_count: 2, min_vram_gb: 40, worker_labels: { team: 'nlp' }, priority: 20 });
  const second = await submitWith(server, { config_name: 'digits-quick', worker_labels: { note: HOSTILE } });
  // The columns of waiting jobs.
  await page.goto('/jobs?phase=waiting');
  const row = (text: string) => page.getByRole('row').filter({ hasText: text });
  await expect(row('2 GPUs')).toContainText('40 GB each');
  await expect(row('2 GPUs').getByText('Position 1', { exact: true })).toBeVisible();
  await expect(row('digits-quick')).toContainText('<img src=x onerror=alert(1)>');
  for (const [width, height] of [[1280, 900], [380, 900]] as const) {
    await page.setViewportSize({ width, height });
    await picture(page, `jobs-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize({ width: 1280, height: 900 });

  // Filter by label, by user and by state; the address contains all filters.
  await page.getByRole('link', { name: /^team=\s?nlp/ }).click();
  await expect(page).toHaveURL(/label=team%3Dnlp/);
  await expect(row('digits-quick')).toHaveCount(0);
  await expect(page.getByText('1 job', { exact: true })).toBeVisible();
  await page.getByRole('link', { name: /^Remove filter/ }).click();
  await expect(row('digits-quick')).toHaveCount(1);
  await searchJobs(page, 'user:nobody-here');
  await expect(page.getByText('No matching jobs')).toBeVisible();
  await page.getByRole('link', { name: 'Clear filters' }).click();
  await page.getByRole('link', { name: 'Queued' }).click();
  await expect(page).toHaveURL(/phase=waiting/);

  // Raising the priority and cancelling return to the list.
  await row('digits-quick').locator('summary').click();
  await row('digits-quick').getByRole('button', { name: 'Raise priority to 15' }).click();
  await expect(page.locator('#content').getByText('Priority updated.')).toBeVisible();
  await expect(page).toHaveURL(/phase=waiting/);
  expect((await (await server.api(`/api/queue/${second}`)).json()).priority).toBe(15);
  await row('2 GPUs').locator('summary').click();
  await row('2 GPUs').getByRole('link', { name: 'Cancel job' }).click();
  await expect(page.getByText('It will be removed from the queue')).toBeVisible();
  await expectAccessible(page);
  await picture(page, 'job-cancel');
  await page.getByRole('button', { name: 'Cancel this job' }).click();
  await waitForJob(server, first, 'cancelled');
  await expect(page).toHaveURL(/phase=waiting/);
});

test('a pending job shows the blockers of each worker, and what would help', async ({ page, server }) => {
  test.setTimeout(90_000);
  const { token } = await makeWorker(server, `small ${HOSTILE}`);
  await registerGpus(server, token, 1);
  for (let number = 1; number <= 11; number += 1) await makeWorker(server, `spare-${number}`);
  const job = await submitWith(server, { gpu_count: 2, worker_labels: { team: 'nlp' } });
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  const reasons = page.getByRole('region', { name: 'Pending reasons' });
  await expect(reasons).toContainText('No worker meets the requirements.');
  await expect(reasons).toContainText('The job requires team=nlp, and this worker has no label team.');
  await expect(reasons).toContainText('Add the label team=nlp to the worker');
  await picture(page, 'job-why-1280');
  await reasons.getByRole('link', { name: '2 more workers' }).click();
  await expect(page).toHaveURL(/workers=all/);
  await expect(reasons).toContainText('<img src=x onerror=alert(1)>');
  await expect(reasons).toContainText('The job requires 2 GPUs, and this worker has 1.');
  await expect(reasons).toContainText('Request at most 1 GPU.');
  await page.setViewportSize({ width: 380, height: 900 });
  await picture(page, 'job-why-380');
  // The bar at the top covers a part of the button that it is scrolled over.
  await page.evaluate(() => window.scrollTo(0, 0));
  await expectAccessible(page);
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
});

test('the pending reason is in the reader’s language', async ({ page, server }) => {
  const job = await submitWith(server, { target: 'worker' });
  await signIn(page, server);
  await page.context().addCookies([{ name: 'language', value: 'ja', url: server.url }]);
  await page.goto(`/jobs/${job}`);
  await expect(page.getByRole('region', { name: '待機している理由' })).toContainText('ワーカーがまだありません');
});

test('a pending job gets a higher priority, is cancelled, and is retried', async ({ page, server }) => {
  const job = await submitWith(server, { gpu_count: 3, worker_labels: { team: 'a&b' } });
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  const clone = page.getByRole('link', { name: 'Edit and resubmit' });
  await expect(clone).toHaveAttribute('href', '/train?config=digits&ran=digits%401&gpus=3&labels=team%3Da%26b&target=auto&priority=10&team=default');
  await page.locator('summary', { hasText: 'Priority' }).click();
  await page.getByLabel('Priority').fill('33');
  await page.getByRole('button', { name: 'Apply', exact: true }).click();
  await expect(page.locator('summary', { hasText: 'Priority' })).toContainText('33');
  await page.locator('summary', { hasText: 'Priority' }).click();
  await page.getByRole('button', { name: 'Set to highest' }).click();
  await expect(page.locator('summary', { hasText: 'Priority' })).toContainText('50');
  await page.locator('summary', { hasText: 'Cancel job' }).click();
  await expect(page.getByText('It will be removed from the queue')).toBeVisible();
  await page.getByRole('button', { name: 'Cancel this job' }).click();
  await waitForJob(server, job, 'cancelled');
  await page.goto(`/jobs/${job}`);
  await page.locator('summary', { hasText: 'Retry' }).click();
  await page.getByLabel('Starting point').selectOption({ label: 'From scratch' });
  await picture(page, 'run-again');
  await page.getByRole('button', { name: 'Retry job' }).click();
  await expect(page).not.toHaveURL(new RegExp(job));
  await expect(page.getByRole('link', { name: /^retry of/ })).toHaveAttribute('href', `/jobs/${job}`);
  await page.getByRole('link', { name: 'Events' }).click();
  await expect(page.getByText(`Submitted as a retry of ${job}`)).toBeVisible();
});

test('“edit and submit” keeps all values of a job', async ({ page, server }) => {
  for (const name of [...EXAMPLE.secrets, 'OTHER_KEY']) {
    const put = await server.api(`/api/secrets/${name}`, { method: 'PUT', body: JSON.stringify({ value: 'hf_0123456789' }) });
    expect(put.status, await put.text()).toBe(200);
  }
  const team = await server.api('/api/teams', { method: 'POST', body: JSON.stringify({ name: EXAMPLE.team }) });
  expect(team.status, await team.text()).toBe(201);
  const member = await server.api(`/api/teams/${EXAMPLE.team}/members/admin`, { method: 'PUT', body: '{}' });
  expect(member.status, await member.text()).toBe(200);
  const job = await submitWith(server, { ...EXAMPLE, config_name: 'digits-quick', config_revision: 1, dry_run: false });
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  const link = page.getByRole('link', { name: 'Edit and resubmit' });
  const { searchParams } = new URL((await link.getAttribute('href'))!, server.url);
  await link.click();
  await expect(page.getByRole('radio', { name: 'digits-quick' })).toBeChecked();
  const values = { 'GPUs': '2', 'Accelerator': 'cuda', 'Priority': '7', 'Label 1': 'gpu_type=a100*', 'Override 1': 'learning_rate=0.1' };
  for (const [label, value] of Object.entries(values)) await expect(page.getByLabel(label, { exact: true })).toHaveValue(value);
  // Each value in the address is that of a control; labels and overrides have one control each.
  const form = await page.locator('form[action="/ui/jobs"]').evaluate((form) =>
    [...new FormData(form as HTMLFormElement)].map(([name, value]) => `${name}=${String(value)}`));
  searchParams.delete('ran');
  for (const [name, value] of searchParams) {
    const parts = name === 'tags' ? [value] : value.split(/[,\n]/);
    for (const part of parts) expect(form).toContain(`${name}=${part}`);
  }
  for (const name of EXAMPLE.secrets) await expect(page.locator(`[id="secret-${name}"]`)).toBeChecked();
  await expect(page.locator('[id="secret-OTHER_KEY"]')).not.toBeChecked();
  expect(page.url()).not.toContain('hf_0123456789');
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page).toHaveURL(/\/jobs\/j_/);
  const resubmitted = await (await server.api(`/api/queue/${page.url().split('/').at(-1)}`)).json();
  const original = await (await server.api(`/api/queue/${job}`)).json();
  // Notes are about the result of one job.
  const fields = [...Object.keys(EXAMPLE), 'max_attempts'].filter((field) => field !== 'notes');
  for (const field of fields) expect(resubmitted[field], field).toEqual(original[field]);
});

test('a job is submitted again with one changed value, and the changes of a newer revision are shown', async ({ page, server }) => {
  const job = await submitWith(server, {});
  const { bundle } = await (await server.api('/api/configs/digits')).json();
  const config = { ...JSON.parse(bundle.files['config.json']), learning_rate: 0.625 };
  const files = { ...bundle.files, 'config.json': JSON.stringify(config) };
  const put = await server.api('/api/configs/digits', { method: 'PUT', body: JSON.stringify({ files }) });
  expect(put.status, await put.text()).toBe(200);
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  await page.getByRole('link', { name: 'Edit and resubmit' }).click();
  await expect(page.getByRole('heading', { name: 'Newer revision available' })).toBeVisible();
  await expect(page.getByRole('radio', { name: 'Run revision 1, same as the job' })).toBeChecked();
  await page.locator('summary', { hasText: 'Overrides' }).click();
  await page.getByLabel('Override 1', { exact: true }).fill('learning_rate=0.25');
  await expectAccessible(page);
  await picture(page, 'train-newer');
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page).toHaveURL(/\/jobs\/j_/);
  await expect(page.getByText('Overrides', { exact: true })).toBeVisible();
  await picture(page, 'job-changed');
  const resubmitted = await (await server.api(`/api/queue/${page.url().split('/').at(-1)}`)).json();
  expect(resubmitted.config_revision).toBe(1);
  expect(resubmitted.overrides.learning_rate.to).toBe(0.25);
});

test('the list is paged, and pending jobs are in the order of the queue', async ({ page, server }) => {
  test.setTimeout(90_000);
  for (let n = 0; n < 51; n += 1) await submit(server, 'digits');
  const urgent = await submitWith(server, { config_name: 'digits-quick', target: 'worker', priority: 40 });
  await signIn(page, server);
  await page.goto('/jobs');
  const rows = page.getByRole('table').locator('tbody tr');
  const pager = page.getByRole('navigation', { name: 'Jobs', exact: true });
  await expect(rows).toHaveCount(50);
  await expect(pager).toContainText('52 jobs');
  await pager.getByRole('link', { name: 'Older' }).click();
  await expect(rows).toHaveCount(2);
  await expect(page).toHaveURL(/cursor=/);
  await pager.getByRole('link', { name: 'Newest' }).click();
  await expect(rows).toHaveCount(50);
  await page.getByRole('link', { name: 'Queued' }).click();
  await expect(rows.first().getByText('Position 1', { exact: true })).toBeVisible();
  await expect(rows.first().getByRole('link', { name: 'digits-quick' })).toHaveAttribute('href', `/jobs/${urgent}`);
  await expect(rows.nth(1).getByText('Position 2', { exact: true })).toBeVisible();
  await pager.getByRole('link', { name: 'Next' }).click();
  await expect(rows).toHaveCount(2);
  await expect(rows.last().getByText('Position 52', { exact: true })).toBeVisible();
  // The menu can move the job to the front.
  await rows.last().locator('summary').click();
  await rows.last().getByRole('button', { name: 'Set to highest' }).click();
  await pager.getByRole('link', { name: 'First page' }).click();
  await expect(rows.first()).not.toContainText('digits-quick');
  await expect(rows.first().getByText('Position 1', { exact: true })).toBeVisible();
});

test('jobs are filtered by worker and time, and the overview links to the failed ones', async ({ page, server }) => {
  test.setTimeout(60_000);
  const host = await Host.connect(server, 'atlas', {});
  const failed = await submit(server, 'digits');
  await host.report(await host.run(), 'failed', { reason: 'no luck' });
  await waitForJob(server, failed, 'failed');
  host.close();
  await submitWith(server, { config_name: 'digits-quick', worker_labels: { team: 'nlp' } });
  await signIn(page, server);
  const rows = page.getByRole('table').locator('tbody tr');
  await page.locator('.tiles').getByRole('link', { name: /^Failed \(24 h\)/ }).click();
  await expect(page).toHaveURL(/status=failed&ended_since=/);
  await expect(rows).toHaveCount(1);
  await page.getByRole('link', { name: /^Remove filter Ended after/ }).click();
  await expect(page).toHaveURL(/\/jobs\?status=failed$/);
  const { workers: [worker] } = await (await server.api('/api/admin/workers')).json();
  await page.goto(`/admin/workers/${worker.id}/jobs`);
  await page.getByRole('link', { name: 'All jobs' }).click();
  await expect(page).toHaveURL(new RegExp(`worker=${worker.id}`));
  await expect(rows).toHaveCount(1);
  await expect(page.getByRole('link', { name: 'Remove filter Worker: atlas' })).toBeVisible();
  await searchJobs(page, 'submitted<2020-01-01');
  await expect(page.getByText('No matching jobs')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Remove filter Worker: ' })).toBeVisible();
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await picture(page, `jobs-narrowed-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }
});

test('the list is searched by a part of the name', async ({ page, server }) => {
  await submitWith(server, {});
  await signIn(page, server);
  await page.goto('/jobs');
  await searchJobs(page, 'DIG');
  await expect(page).toHaveURL(/q=DIG/);
  await expect(page.locator('table.jobs tbody')).toContainText('digits');
  await searchJobs(page, 'haystack');
  await expect(page.locator('table.jobs tbody')).toHaveCount(0);
});

test('the list is searched by metrics and configuration, and sorted by its columns', async ({ page, server }) => {
  test.setTimeout(90_000);
  const config = (rank: number) => JSON.stringify({ files: { 'config.json': JSON.stringify({ lora_rank: rank }) } });
  for (const [name, rank] of [['flux-small', 4], ['flux-large', 64]] as const)
    await server.api(`/api/configs/${name}`, { method: 'PUT', body: config(rank) });
  const host = await Host.connect(server, 'atlas', {});
  for (const [name, loss] of [['flux-small', 0.2], ['flux-large', 0.4]] as const) {
    await submitWith(server, { config_name: name, tags: ['ablation'] });
    const offer = await host.run();
    await host.progress(offer, [{ step: 10, at: new Date().toISOString(), loss }]);
    await host.report(offer, 'completed', {});
  }
  await submitWith(server, { config_name: 'digits', name: 'Nightly', priority: 30 });
  await signIn(page, server);
  await page.goto('/jobs');
  const titles = page.locator('table.jobs tbody .row-link[href^="/jobs/"]');
  await expect(titles).toHaveText(['Nightly', 'flux-large #1', 'flux-small #1']);
  for (const [query, expected] of [
    ['config:flux* tag:ablation status:completed loss<0.3', ['flux-small #1']],
    ['config.lora_rank>=16', ['flux-large #1']],
    ['-tag:ablation', ['Nightly']],
    ['#1 worker:atlas status:ended', ['flux-large #1', 'flux-small #1']],
  ] as const) {
    await searchJobs(page, query);
    await expect(titles).toHaveText([...expected]);
  }
  const heading = (name: string) => page.getByRole('columnheader', { name });
  await heading('loss').getByRole('link').click();
  await expect(page).toHaveURL(/sort=metric\.loss/);
  await expect(heading('loss')).toHaveAttribute('aria-sort', 'ascending');
  await expect(titles).toHaveText(['flux-small #1', 'flux-large #1']);
  await heading('loss').getByRole('link').click();
  await expect(titles).toHaveText(['flux-large #1', 'flux-small #1']);
  await searchJobs(page, 'flux');
  await expect(heading('loss'), 'a search keeps the order').toHaveAttribute('aria-sort', 'descending');
  await picture(page, 'jobs-search');
  await searchJobs(page, 'flux loss<low');
  await expect(page.getByText('loss<low', { exact: false }).first()).toBeVisible();
  await expectAccessible(page);
  await picture(page, 'jobs-search-invalid');
  await searchJobs(page, 'flux loss<1');
  await expect(titles).toHaveText(['flux-large #1', 'flux-small #1']);
});

test('jobs of one configuration can be distinguished', async ({ page, server }) => {
  const jobs = [await submitWith(server, {}), await submitWith(server, {}), await submitWith(server, { gpu_count: 2 })];
  await signIn(page, server);
  await page.goto('/jobs?columns=id,requires');
  const rows = page.getByRole('main').getByRole('table').locator('tbody tr');
  await expect(rows).toHaveCount(3);
  for (const [index, job] of jobs.entries()) {
    const row = rows.filter({ has: page.locator(`a[href="/jobs/${job}"]`) });
    await expect(row.getByText(`j_…${job.slice(-6)}`, { exact: true })).toBeVisible();
    await expect(row.getByTitle(job, { exact: true })).toHaveCount(1);
    await expect(row.getByRole('checkbox')).toHaveAccessibleName(`Select digits #${index + 1} j_…${job.slice(-6)}`);
  }
  await expect(page.getByRole('row').filter({ hasText: '2 GPUs' }).locator(`a[href="/jobs/${jobs[2]}"]`)).toBeVisible();
  await page.goto(`/jobs?q=${jobs[1]}`);
  await expect(page.locator('table.jobs tbody tr')).toHaveCount(1);
  await expect(page.locator(`table.jobs a[href="/jobs/${jobs[1]}"]`)).toBeVisible();
});

test('users who see only their own jobs find no others', async ({ page, server }) => {
  const job = await submitWith(server, {});
  await signInWith(page, server, 'ana', ['job.view.own', 'config.view']);
  await page.goto('/jobs');
  await expect(page.getByText('No jobs yet')).toBeVisible();
  await searchJobs(page, job);
  await expect(page.getByText('No matching jobs')).toBeVisible();
  expect((await page.request.get(`/jobs/${job}/events`)).status()).toBe(404);
  expect((await page.request.get(`/jobs/${job}/configuration`)).status()).toBe(404);
});

test('a lost attempt has its own lane, linked to the attempt that resumes from it', async ({ page, server }) => {
  const host = await Host.connect(server, 'atlas', {});
  const job = await submit(server, 'digits');
  const offer = await host.run();
  await host.report(offer, 'requeue', { reason: 'the <b>host</b> goes' });
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  const timeline = page.getByRole('region', { name: 'Timeline' });
  await expect(timeline.getByRole('img', { name: /^Retry back-off · / })).toBeVisible();
  await expect(timeline.getByRole('img', { name: /^Running · / })).toBeVisible();
  await expect(timeline.getByRole('row').filter({ hasText: 'Attempt 1' })).toContainText('Lost');
  await expect(page.getByRole('region', { name: 'Pending reasons' })).toContainText('The last attempt was lost. Next try in');
  await expect(page.locator('.job-note')).toHaveText(/^Attempt 1 was lost: The agent returned the job\. Next attempt in \d+\ss\.$/);
  // Keyboard focus shows the description of a bar.
  await timeline.getByRole('img', { name: /^Running · / }).focus();
  await expect(timeline.locator('.lane-note:visible')).toHaveText(/^Running · /);
  await picture(page, 'job-lost');
  host.close();
});

test('the log of a running job shows its newest lines', async ({ page, server, javaScriptEnabled }) => {
  const { host, offer } = await startJob(server);
  const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `line ${from + n}\n`).join('');
  const visibleTexts = () => page.getByRole('log').evaluate((log) => {
    const view = log.getBoundingClientRect();
    const isInView = ({ top, bottom }: DOMRect) => top >= view.top - 1 && bottom <= view.bottom + 1;
    return [...log.querySelectorAll('.log-line')].filter((line) => isInView(line.getBoundingClientRect())).map((line) => line.textContent);
  });
  const expectLastLine = async (number: number) => {
    await expect.poll(async () => (await visibleTexts()).at(-1)).toBe(`line ${number}`);
    expect(await visibleTexts()).not.toContain('line 1');
  };
  const offset = await host.log(offer, lines(1, 400));
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}`);
  await expectLastLine(400);
  await host.log(offer, lines(401, 450), offset);
  if (!javaScriptEnabled) await page.reload();
  await expectLastLine(450);
  host.close();
});

test('files are sorted by the numbers in their names', async ({ page, server }) => {
  const { host, offer } = await startJob(server);
  for (const step of [120, 30, 1_000]) {
    await host.file(offer, `validation_images/step_${step}_0.png`, 'sample', sample(0.5, step));
    await host.file(offer, `caches/shard-${step}.bin`, 'other', Buffer.alloc(100, step % 256));
  }
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}?show=files`);
  for (const [table, name] of [['Sample', (step: number) => `validation_images/step_${step}_0.png`], ['Other', (step: number) => `caches/shard-${step}.bin`]] as const) {
    await expect(page.getByRole('table', { name: table }).getByRole('rowheader')).toHaveText([30, 120, 1_000].map(name));
  }
  host.close();
});

test('a finished job shows its weights, samples, log, artifacts, configuration, timeline and events, and can be printed', async ({ page, server, agent }) => {
  test.setTimeout(120_000);
  const { token } = await makeWorker(server, 'gpu-1');
  agent({ token, args: ['--persistent'] });
  const job = await submit(server, 'digits-quick');
  await waitForJob(server, job, 'completed');
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  await expect(page.locator('.job-note')).toHaveText(/^Training completed after /);
  await expect(page.getByRole('region', { name: 'Weights' }).getByText('model.safetensors', { exact: true })).toBeVisible();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download weights' }).click();
  expect((await download).suggestedFilename()).toBe('model.safetensors');
  await picture(page, 'job-done-1280');
  await expectAccessible(page);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await expect(page.getByRole('navigation', { name: 'Job views' })).toBeHidden();
  await expect(page.locator('.sidebar')).toBeHidden();
  await expect(page.getByRole('region', { name: 'Details' })).toBeVisible();
  await picture(page, 'job-print');
  await page.emulateMedia({ media: 'screen', colorScheme: 'light' });

  const views = page.getByRole('navigation', { name: 'Job views' });
  await views.getByRole('link', { name: 'Samples' }).click();
  await expect(page).toHaveURL(/show=samples/);
  await expect(views.getByRole('link', { name: 'Samples' })).toHaveAttribute('aria-current', 'page');
  const samples = page.getByRole('region', { name: 'Samples' });
  await expect(samples.locator('img[src*="validation_images"]').first()).toBeVisible();
  const newest = await samples.locator('.gallery-bar p').innerText();
  await picture(page, 'job-samples');
  await expectAccessible(page);
  await samples.getByRole('link', { name: 'Earlier step' }).click();
  await expect(page).toHaveURL(/step=\d+/);
  await expect(samples.locator('.gallery-bar p')).not.toHaveText(newest);
  const step = new URL(page.url()).searchParams.get('step');
  await page.goto(`/jobs/${job}?show=samples&against=${step}`);
  await expect(samples.locator('.pair').first().locator('img')).toHaveCount(2);
  await picture(page, 'job-compare');
  await samples.getByRole('link', { name: 'All steps' }).first().click();
  await expect(page).toHaveURL(/sample=/);
  expect(await samples.locator('img').count()).toBeGreaterThan(1);

  await views.getByRole('link', { name: 'Log' }).click();
  await expect(page).toHaveURL(`${server.url}/jobs/${job}/log`);
  await expect(page.getByRole('log')).toContainText('step');
  await expect(views.getByRole('link', { name: 'Log' })).toHaveAttribute('aria-current', 'page');

  await views.getByRole('link', { name: 'Artifacts' }).click();
  await expect(page).toHaveURL(/show=files/);
  await expect(page.getByRole('region', { name: 'Checkpoints' })).not.toContainText('resumes from here');
  await expect(page.getByRole('table', { name: 'Final' })).toContainText('model.safetensors');
  await page.getByRole('region', { name: 'Checkpoints' }).locator('summary').first().click();
  await picture(page, 'job-files');
  await expectAccessible(page);

  await views.getByRole('link', { name: 'Configuration' }).click();
  await expect(page.getByRole('heading', { name: 'config.json' })).toBeVisible();
  await expect(page.getByRole('region', { name: 'config.json', exact: true }).last()).toContainText('max_train_steps');
  await picture(page, 'job-configuration');
  await expectAccessible(page);

  await views.getByRole('link', { name: 'Events' }).click();
  await expect(page.getByText('Attempt 1 dispatched to gpu-1')).toBeVisible();
  await expect(page.getByText('Attempt 1 completed on gpu-1')).toBeVisible();
  const timeline = page.getByRole('region', { name: 'Timeline' });
  await expect(timeline.getByRole('img', { name: /^Running · / })).toBeVisible();
  await expect(timeline.getByRole('row').filter({ hasText: 'Attempt 1' })).toContainText('Completed');
  await expect(timeline).toContainText('gpu-1');
  await expect(timeline.getByRole('link', { name: 'Attempt 1' })).toHaveAttribute('href', `/jobs/${job}/log?attempt=1`);
  await page.locator('.event summary').first().click();
  await expect(page.locator('.event pre').first()).toContainText('job.submitted');
  await picture(page, 'job-events');
  await expectAccessible(page);
  await page.setViewportSize({ width: 380, height: 900 });
  await page.emulateMedia({ colorScheme: 'dark' });
  for (const view of ['', '?show=charts', '?show=samples', '?show=files', '?show=system', '/log', '/configuration', '/events']) {
    await page.goto(`/jobs/${job}${view}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth), view).toBeLessThanOrEqual(380);
    await picture(page, `job-380-${view.replace(/\W+/g, '-') || 'overview'}`);
  }
  await expectAccessible(page);
});

test('a job is named and tagged at its submit, found by its tag, and described later', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/train?config=digits');
  await page.getByLabel('Name', { exact: false }).fill('rank 16');
  await page.getByLabel('Tags', { exact: false }).fill('ablation, night');
  await page.getByLabel('Notes', { exact: false }).fill('Compare with Monday.');
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page.getByRole('heading', { name: 'rank 16', level: 1 })).toBeVisible();
  await expect(page.locator('.byline')).toContainText('digits #1');
  await expect(page.getByText('Compare with Monday.')).toBeVisible();
  await expectAccessible(page);
  await submitWith(server, {});
  await page.getByRole('link', { name: 'ablation' }).click();
  await expect(page).toHaveURL(/tag=ablation/);
  const rows = page.getByRole('table').getByRole('row').filter({ has: page.getByRole('rowheader') });
  await expect(rows).toHaveCount(1);
  await expectAccessible(page);
  await picture(page, 'jobs-tagged');
  await page.getByRole('link', { name: 'Remove filter Tag: ablation' }).click();
  await expect(rows).toHaveCount(2);
  await expect(rows.filter({ hasText: 'digits #2' })).toHaveCount(1);

  await page.getByRole('link', { name: 'rank 16' }).click();
  await page.getByRole('link', { name: 'Edit description' }).click();
  await expect(page.getByLabel('Tags', { exact: false })).toHaveValue('ablation, night');
  await expectAccessible(page);
  await picture(page, 'job-describe');
  await page.getByLabel('Name', { exact: false }).fill('x'.repeat(129));
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('at most 128 characters')).toBeVisible();
  await expect(page.getByLabel('Tags', { exact: false })).toHaveValue('ablation, night');
  await page.getByLabel('Name', { exact: false }).fill(HOSTILE);
  await page.getByLabel('Tags', { exact: false }).fill('night, Ünïcødé');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { name: HOSTILE, level: 1 })).toBeVisible();
  await expect(page.locator('.byline').getByRole('link', { name: 'Ünïcødé' })).toBeVisible();
  await expect(page.locator('.byline').getByRole('link', { name: 'ablation' })).toHaveCount(0);
  await picture(page, 'job-described');
});
