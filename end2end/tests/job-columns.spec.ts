// The columns of the list of jobs, and saved views of it. With and without JavaScript.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host } from '../host';
import { signIn, signInAs } from '../steps';

/** Completes a job of each rank, with a loss and another metric. */
async function completeJobs(server: Server): Promise<void> {
  const host = await Host.connect(server, 'atlas', {});
  for (const [rank, loss] of [[4, 0.2], [64, 0.4]] as const) {
    const config = { lora_rank: rank, learning_rate: '1e-5', model: { type: 'lora' } };
    const body = JSON.stringify({ files: { 'config.json': JSON.stringify(config) } });
    await server.api(`/api/configs/rank-${rank}`, { method: 'PUT', body });
    const submit = JSON.stringify({ config_name: `rank-${rank}`, name: `Rank ${rank}`, tags: ['ablation', 'night', 'third'] });
    expect((await server.api('/api/queue/submit', { method: 'POST', body: submit })).status).toBe(201);
    const offer = await host.run();
    await host.progress(offer, [{ step: 10, total_steps: 20, at: new Date().toISOString(), loss, metrics: { 'val/loss': loss * 2 } }]);
    await host.report(offer, 'completed', {});
  }
}

const headings = (page: Page) => page.locator('table.jobs thead th');
const rows = (page: Page) => page.locator('table.jobs tbody tr');
const width = (page: Page) => page.locator('html').evaluate((html) => html.scrollWidth);

test('columns are added, moved and removed, and the address has them', async ({ page, server }) => {
  test.setTimeout(90_000);
  await completeJobs(server);
  await signIn(page, server);
  await page.goto('/jobs?q=tag%3Aablation');
  await expect(headings(page)).toHaveText(['Job', 'Status', 'User', 'Progress', 'loss', 'Worker', 'Submitted', 'Duration', 'Actions']);
  await expect(rows(page).first()).toContainText('rank-64 #1');
  await picture(page, 'job-columns-default');
  await page.getByRole('link', { name: 'Columns and views' }).click();
  const columns = page.getByRole('region', { name: 'Columns', exact: true });
  await columns.getByRole('link', { name: 'Add val/loss' }).click();
  await columns.getByRole('link', { name: 'Add model.type' }).click();
  await columns.getByRole('link', { name: 'Add lora_rank' }).click();
  await columns.getByRole('link', { name: 'Move lora_rank left' }).click();
  for (const name of ['User', 'Progress', 'Worker', 'Submitted']) await columns.getByRole('link', { name: `Remove ${name}` }).click();
  await expect(columns.getByRole('listitem').filter({ hasText: 'lora_rank' })).toContainText('configuration value');
  await expectAccessible(page);
  await picture(page, 'job-columns-chooser');
  await columns.getByRole('link', { name: 'Show list' }).click();
  await expect(page).toHaveURL(/q=tag%3Aablation.*columns=status%2Cmetric\.loss%2Cduration%2Cmetric\.val%2Floss%2Cconfig\.lora_rank%2Cconfig\.model\.type/);
  await expect(headings(page)).toHaveText(['Job', 'Status', 'loss', 'Duration', 'val/loss', 'lora_rank', 'model.type', 'Actions']);
  const cells = (row: number) => rows(page).nth(row).getByRole('cell');
  await expect(cells(0).filter({ hasText: '0.8000' })).toBeVisible();
  await expect(cells(0).filter({ hasText: '64' })).toBeVisible();
  await expect(cells(1).filter({ hasText: 'lora' })).toBeVisible();

  // Each column sorts the list.
  await headings(page).filter({ hasText: 'lora_rank' }).getByRole('link').click();
  await expect(page).toHaveURL(/sort=config\.lora_rank/);
  await expect(rows(page).first()).toContainText('Rank 4');
  await picture(page, 'job-columns');
  await expectAccessible(page);
  await page.setViewportSize({ width: 380, height: 800 });
  await expect(rows(page).first()).toContainText('0.4000');
  await picture(page, 'job-columns-380');
  await expectAccessible(page);
  expect(await width(page)).toBeLessThanOrEqual(380);
});

test('many columns scroll in the table, not the page', async ({ page, server }) => {
  await completeJobs(server);
  await signIn(page, server);
  const all = ['status', 'user', 'config', 'revision', 'tags', 'requires', 'priority', 'progress', 'time_left', 'gpus', 'worker', 'attempts', 'submitted', 'started', 'ended', 'duration', 'id', 'metric.loss', 'config.learning_rate', 'config.none'];
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`/jobs?columns=${all.join(',')}`);
  await expect(headings(page)).toHaveCount(all.length + 2);
  expect(await width(page)).toBeLessThanOrEqual(1280);
  const heights = await rows(page).evaluateAll((found) => found.map((row) => row.getBoundingClientRect().height));
  expect(Math.max(...heights)).toBeLessThanOrEqual(37);
  await expectAccessible(page);
  await picture(page, 'job-columns-all');
  await page.goto(`/jobs/view?columns=${all.join(',')}`);
  await expect(page.getByText('The list has 20 columns, the maximum.')).toBeVisible();
  // An address of another version, or with a mistake.
  await page.goto('/jobs?columns=status,nonsense');
  await expect(rows(page)).toHaveCount(2);
});

test('columns are made wider and narrower, and the address has their widths', async ({ page, server }) => {
  await completeJobs(server);
  await signIn(page, server);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto('/jobs?columns=status,metric.loss');
  await page.getByRole('link', { name: 'Columns and views' }).click();
  const column = (name: string) => page.locator('.column-row').filter({ hasText: name });
  await expect(column('Status')).toContainText('automatic width');
  await column('Status').getByRole('link', { name: 'Make Status wider' }).click();
  await expect(column('Status')).toContainText('208 px');
  for (const width of ['80', '48']) {
    await column('loss').getByRole('link', { name: 'Make loss narrower' }).click();
    await expect(column('loss')).toContainText(`${width} px`);
  }
  await expect(column('loss').getByRole('link', { name: 'Make loss narrower' })).toHaveCount(0);
  await column('Job').getByRole('link', { name: 'Make Job wider' }).click();
  await expectAccessible(page);
  await picture(page, 'job-columns-widths');
  await page.setViewportSize({ width: 380, height: 800 });
  expect(await width(page)).toBeLessThanOrEqual(380);
  await picture(page, 'job-columns-widths-380');
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('link', { name: 'Show list' }).click();
  await expect(page).toHaveURL((url) => url.searchParams.get('widths') === 'metric.loss:48,name:288,status:208');
  const widths = () => headings(page).evaluateAll((cells) => cells.map((cell) => cell.getAttribute('width')));
  await expect.poll(widths).toEqual(['288', '208', '48', null]);
  // Sorted, the list has the same widths.
  await headings(page).filter({ hasText: 'loss' }).getByRole('link').click();
  await expect(page).toHaveURL(/sort=metric\.loss/);
  await expect.poll(widths).toEqual(['288', '208', '48', null]);
  await page.goto('/jobs?widths=name:nonsense,status:1e9');
  await expect.poll(widths).toEqual(['256', '800', ...Array(7).fill(null)]);
});

test('a view is saved, shared, opened by a colleague and deleted', async ({ page, server, browser }) => {
  test.setTimeout(90_000);
  await completeJobs(server);
  await signIn(page, server);
  await page.goto('/jobs?q=loss%3C0.3&sort=-duration&columns=status,metric.loss');
  await page.getByRole('link', { name: 'Columns and views' }).click();
  await page.getByLabel('Name').fill('Good <b>runs</b>');
  await page.locator('label[for=shared]').click();
  await page.getByRole('button', { name: 'Save view' }).click();
  await expect(page.locator('#content').getByText('View saved.')).toBeVisible();
  const links = page.getByRole('navigation', { name: 'Saved views' });
  const link = links.getByRole('link', { name: 'Good <b>runs</b>' });
  await expect(link).toHaveAttribute('aria-current', 'true');
  await picture(page, 'job-views');
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Failed' }).click();
  await expect(link).not.toHaveAttribute('aria-current', 'true');

  const other = await browser.newContext({ baseURL: server.url, javaScriptEnabled: test.info().project.name !== 'no-js' });
  const colleague = await other.newPage();
  await signInAs(colleague, server, 'eve', 'viewer');
  await colleague.goto('/jobs');
  await colleague.getByRole('link', { name: 'Good <b>runs</b>' }).click();
  await expect(headings(colleague)).toHaveText(['Job', 'Status', 'loss', 'Actions']);
  await expect(rows(colleague)).toHaveCount(1);
  await colleague.getByRole('link', { name: 'Columns and views' }).click();
  await expect(colleague.getByText('Shared by')).toBeVisible();
  await expect(colleague.getByText('Share with all users')).toHaveCount(0);
  await expect(colleague.getByText('Delete', { exact: true })).toHaveCount(0);
  await other.close();

  // A name that is not allowed is said at the form, which keeps it.
  await page.goto('/jobs/view');
  await page.getByLabel('Name').fill('\u202e');
  await page.getByRole('button', { name: 'Save view' }).click();
  await expect(page.getByText('must be 1 to 64 visible characters')).toBeVisible();
  await page.getByText('Delete', { exact: true }).click();
  await page.getByRole('button', { name: 'Delete view' }).click();
  await expect(page.locator('#content').getByText('View deleted.')).toBeVisible();
  await expect(page.getByText('No saved views yet.')).toBeVisible();
  await picture(page, 'job-views-none');
});

test('jobs are grouped by configuration, user and tag', async ({ page, server }) => {
  await completeJobs(server);
  const submit = JSON.stringify({ config_name: 'digits' });
  expect((await server.api('/api/queue/submit', { method: 'POST', body: submit })).status).toBe(201);
  await signIn(page, server);
  await page.goto('/jobs');
  await page.getByRole('link', { name: 'Columns and views' }).click();
  await page.getByRole('region', { name: 'Groups' }).getByRole('link', { name: 'Configuration' }).click();
  await expect(page).toHaveURL(/group=config/);
  const groups = page.getByRole('main').getByRole('table').locator('tbody tr');
  await expect(groups).toHaveCount(3);
  await expect(groups.filter({ hasText: 'rank-64' }).getByRole('cell').nth(2)).toHaveText('1');
  await expect(page.getByText('3 groups')).toBeVisible();
  await expectAccessible(page);
  await picture(page, 'job-groups');
  await page.setViewportSize({ width: 380, height: 800 });
  expect(await width(page)).toBeLessThanOrEqual(380);
  await picture(page, 'job-groups-380');
  await groups.filter({ hasText: 'rank-64' }).getByRole('link', { name: '1', exact: true }).click();
  await expect(page).toHaveURL(/status=completed&config=rank-64/);
  await expect(rows(page)).toHaveCount(1);

  // A search narrows the groups too, and jobs without a tag are a group.
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto('/jobs?group=tag');
  await expect(groups).toHaveCount(4);
  await groups.filter({ hasText: 'No tag' }).getByRole('link').first().click();
  await expect(rows(page)).toHaveCount(1);
  await expect(rows(page).first()).toContainText('digits');
  await page.goto('/jobs?group=tag&q=config%3Arank-4');
  await expect(groups).toHaveCount(3);
  await expect(groups.filter({ hasText: 'ablation' }).getByRole('cell').nth(2)).toHaveText('1');
});
