// Server-rendered pages with their script: shortcuts, search, notifications, times, and live updates.
import { expect, expectAccessible, test } from '../fixtures';
import { live, makeWorker, PASSWORD, signIn, signInAs } from '../steps';

test('a server-rendered page has the shortcuts, search and notifications of every page', async ({ page, server }) => {
  await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto('/admin/audit');
  await live(page);
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard shortcuts' })).toBeVisible();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('gpu-1');
  await expect(page.getByRole('option', { name: /gpu-1/ }).first()).toBeVisible();
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'Search' }).first().click();
  await expect(page.getByRole('combobox', { name: 'Search' })).toBeFocused();
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Users');
  await live(page);
  await page.keyboard.press('j');
  await expect(page.getByRole('link', { name: 'admin' }).last()).toBeFocused();
});

test('the message of a form on a server-rendered page can be read again and dismissed', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/secrets');
  await live(page);
  await page.getByLabel('Name').fill('HF_TOKEN');
  await page.getByLabel('Value').fill('hf_secret');
  await page.getByRole('button', { name: 'Save secret' }).click();
  const notice = page.locator('.notice');
  await expect(notice).toBeVisible();
  const text = await notice.locator('p').first().innerText();
  await live(page);
  await page.locator('.sidebar .notes summary').click();
  await expect(page.locator('.sidebar .notes-list')).toContainText(text);
  await notice.getByRole('button', { name: 'Dismiss' }).click();
  await expect(notice).toHaveCount(0);
});

test('a server-rendered page updates, except a part that the user is working with', async ({ page, server }) => {
  await signIn(page, server);
  const add = async (name: string) => {
    const body = JSON.stringify({ name, role: 'viewer', password: PASSWORD });
    expect((await server.api('/api/admin/users', { method: 'POST', body })).status).toBe(201);
  };
  await page.goto('/admin/users');
  await live(page);
  const form = page.locator('form[action="/ui/users"]');
  await form.getByLabel('Name').fill('half-typed');
  await add('ada');
  await expect(page.getByRole('link', { name: 'ada' })).toBeVisible();
  await expect(form.getByLabel('Name'), 'the typed text stays').toHaveValue('half-typed');
  const list = page.locator('[data-part=users]');
  await list.getByRole('link', { name: 'ada' }).focus();
  await add('bob');
  await expect(page.getByRole('link', { name: 'ada' })).toBeFocused();
  await expect(list.getByRole('link', { name: 'bob' })).toHaveCount(0);
  await form.getByLabel('Name').focus();
  await expect(list.getByRole('link', { name: 'bob' })).toBeVisible();
});

test('a part in use does not delay other parts, and both are complete in the end', async ({ page, server, browser }) => {
  await signInAs(page, server, 'ada', 'lead');
  await page.goto('/account');
  await live(page);
  const tokens = page.locator('[data-part=tokens]');
  const sessions = page.locator('[data-part=sessions]').getByRole('listitem');
  await tokens.getByRole('link').focus();
  const response = await page.request.post('/api/account/tokens', { data: { name: 'ci' }, headers: { origin: server.url } });
  expect(response.status()).toBe(201);
  const otherContext = await browser.newContext({ baseURL: server.url });
  const otherPage = await otherContext.newPage();
  await otherPage.goto('/login');
  await otherPage.getByLabel('Name').fill('ada');
  await otherPage.getByLabel('Password').fill(PASSWORD);
  await otherPage.getByRole('button', { name: 'Sign in' }).click();
  await expect(otherPage.getByRole('heading', { level: 1 })).toHaveText('Overview');
  await expect(tokens).not.toContainText('ci');
  await page.locator('#old').focus();
  await expect(tokens).toContainText('ci');
  await expect(sessions).toHaveCount(2);
  await otherContext.close();
});

test('ages update and show the exact time; the audit log shows times', async ({ page, server }) => {
  await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.clock.install();
  await page.goto('/configs');
  await live(page);
  const age = page.locator('main time .moment').first();
  await expect(age).toHaveText(/now|ago/);
  await expect(age).toHaveAttribute('title', /UTC$/);
  await page.clock.fastForward('10:00');
  await expect(age).toHaveText('10 min ago');
  await page.goto('/admin/audit');
  await expect(page.locator('main time:visible').first()).toContainText('UTC');
});

test('a new API token is copied by its button', async ({ page, server, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await signIn(page, server);
  await page.goto('/account');
  await live(page);
  await page.locator('form[action="/ui/account/tokens"]').getByLabel('Token name').fill('ci');
  await page.locator('form[action="/ui/account/tokens"]').getByRole('button').click();
  const newToken = page.locator('section[aria-labelledby=made]');
  await live(page);
  await newToken.getByRole('button', { name: /^Copy/ }).click();
  await expect(newToken.getByText('Copied')).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(await newToken.locator('pre').innerText());
});
