// Features of every page, with and without JavaScript: preferences, search, and undo.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { makeWorker, signIn, submit } from '../steps';

const draining = async (server: Server, id: string) => (await (await server.api(`/api/admin/workers/${id}`)).json()).draining;

async function choose(page: Page, label: string): Promise<void> {
  await page.getByRole('main').getByLabel(label, { exact: true }).check();
}

test('preferences are stored, and the form returns to the previous page', async ({ page, server }) => {
  await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto('/jobs');
  await page.locator('.sidebar .account-menu > summary').click();
  await page.locator('.sidebar').getByRole('link', { name: 'Preferences' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Preferences');
  await expectAccessible(page);
  await picture(page, 'preferences');
  await choose(page, 'Compact');
  await choose(page, 'Dark');
  await choose(page, 'Local time');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page).toHaveURL(`${server.url}/jobs`);
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.goto('/admin/workers');
  await expect(page.locator('html')).toHaveClass(/is-compact/);
  await picture(page, 'workers-compact');
  await expectAccessible(page);
  await page.goto('/preferences');
  for (const label of ['Compact', 'Dark', 'Local time', 'On']) await expect(page.getByRole('main').getByLabel(label, { exact: true })).toBeChecked();
});

test('the document already has the density', async ({ page, server, context }) => {
  await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  const height = async () => {
    await page.goto('/admin/workers');
    return (await page.getByRole('row').filter({ hasText: 'gpu-1' }).boundingBox())!.height;
  };
  const before = await height();
  await context.addCookies([{ name: 'density', value: 'compact', url: server.url }]);
  expect(await height()).toBeLessThan(before);
  const html = await (await page.request.get('/admin/workers')).text();
  expect(html).toMatch(/<html[^>]*class="is-compact"/);
});

test('preferences and search can be opened on a phone', async ({ page, server }) => {
  await page.setViewportSize({ width: 380, height: 800 });
  await signIn(page, server);
  await page.locator('.top-menu > summary').click();
  await picture(page, 'menu-380');
  await page.locator('.top-menu').getByRole('link', { name: 'Preferences' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Preferences');
  await picture(page, 'preferences-380');
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
  await page.locator('.topbar').getByRole('link', { name: 'Search' }).click();
  // Without scripts the button is a link.
  if (test.info().project.use.javaScriptEnabled ?? true) {
    await expect(page.getByRole('combobox', { name: 'Search' })).toBeFocused();
    await page.goto('/search');
  }
  await expect(page).toHaveURL(/\/search$/);
  await page.getByRole('searchbox').fill('gpus');
  await page.getByRole('searchbox').press('Enter');
  await page.getByRole('main').getByRole('link', { name: /GPUs/ }).click();
  await expect(page).toHaveURL(/\/fleet\/gpus$/);
});

test('the search finds items by a few letters, and escapes their names', async ({ page, server }) => {
  const { worker_id: id } = await makeWorker(server, 'rack-4-box');
  await server.api(`/api/admin/workers/${id}`, { method: 'PATCH', body: JSON.stringify({ labels: { team: '<b>nlp</b>' } }) });
  await makeWorker(server, '<img src=x onerror=alert(1)>');
  const job = await submit(server, 'digits-quick');
  await signIn(page, server);
  const lines = page.getByRole('main').locator('.palette-option');
  const search = async (query: string) => {
    await page.goto('/search');
    await page.getByRole('searchbox').fill(query);
    await page.getByRole('button', { name: 'Search' }).click();
  };
  await search('r4b');
  await expect(lines).toHaveCount(1);
  await expect(lines).toContainText('rack-4-box');
  await search('<b>nlp');
  await expect(lines).toContainText('rack-4-box');
  await search('onerror');
  await expect(lines).toContainText('<img src=x onerror=alert(1)>');
  await search(job);
  await expect(lines).toContainText('digits-quick');
  await search('dq');
  await expect(lines).toHaveCount(2);
  await picture(page, 'search');
  await expectAccessible(page);
  await lines.filter({ hasText: 'Queued' }).click();
  await expect(page).toHaveURL(`${server.url}/jobs/${job}`);
  await search('no such thing');
  await expect(page.getByText('No results')).toBeVisible();
  await expectAccessible(page);
  await search('Theme: Dark');
  await lines.first().click();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});

test('an action from the search asks for confirmation', async ({ page, server }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto('/search');
  await page.getByRole('main').getByRole('link', { name: /^Drain/ }).click();
  await page.getByRole('main').getByRole('link', { name: /Drain: gpu-1/ }).click();
  await expect(page.getByRole('button', { name: 'Drain worker' })).toBeVisible();
  expect(await draining(server, id)).toBe(false);
});

test('Undo resumes a drained worker', async ({ page, server }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}?confirm=drain`);
  await page.getByRole('button', { name: 'Drain worker' }).click();
  const messages = page.locator('.toast, .notice');
  await expect(messages.filter({ hasText: 'Worker draining. Running jobs finish; no new jobs start.' })).toBeVisible();
  expect(await draining(server, id)).toBe(true);
  await picture(page, 'drained');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(messages.filter({ hasText: 'Worker resumed.' })).toBeVisible();
  expect(await draining(server, id)).toBe(false);
});
