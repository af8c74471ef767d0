// A worker token: its limits, its rotation, two agents with one token, and a rejected agent.
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host } from '../host';
import { makeWorker, sendAsAgent, signIn } from '../steps';

const worker = async (server: Server, id: string) => (await server.api(`/api/admin/workers/${id}`)).json();

function register(server: Server, token: string, body: object): Promise<Response> {
  const headers = { 'x-worker-token': token, 'content-type': 'application/json' };
  return fetch(`${server.url}/api/workers/register`, { method: 'POST', headers, body: JSON.stringify({ protocol: 1, persistent: true, ...body }) });
}

test('the token of a new worker expires, and is valid from the listed networks only', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name').fill('gpu-1');
  await page.locator('summary', { hasText: 'Token restrictions' }).click();
  await page.getByLabel('Expires in (days)').fill('30');
  await page.getByLabel('Allowed networks').fill('10.0.0.0/33');
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.getByRole('main').getByRole('alert')).toContainText('10.0.0.0/33');
  await expect(page.getByLabel('Expires in (days)'), 'the typed value stays visible').toHaveValue('30');
  await page.getByLabel('Allowed networks').fill('10.0.0.0/8, ::1');
  await picture(page, 'create-limited');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('gpu-1');
  const token = page.getByRole('region', { name: 'Token', exact: true });
  await expect(token).toContainText('10.0.0.0/8, ::1/128');
  const created = (await (await server.api('/api/admin/workers')).json()).workers[0];
  expect(created.allowed_networks).toEqual(['10.0.0.0/8', '::1/128']);
  expect((Date.parse(created.token_expires_at) - Date.now()) / 86_400_000).toBeCloseTo(30, 1);
});

test('a rotated token stays valid until the agent uses the new one', async ({ page, server }) => {
  const host = await Host.connect(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${host.id}`);
  const token = page.getByRole('region', { name: 'Token', exact: true });
  await token.locator('summary', { hasText: 'Rotate token' }).click();
  await token.getByLabel('Old token expires').selectOption('In 1 hour');
  await picture(page, 'token-rotate');
  await expectAccessible(page);
  await token.getByRole('button', { name: 'Rotate token' }).click();
  const newToken = await page.getByLabel('Worker token', { exact: true }).innerText();
  expect(newToken).not.toBe(host.token);
  await expect(token).toContainText('Previous token expires');
  await host.sendReadings([]);
  const end = (await worker(server, host.id)).old_token_ends_at;
  expect((Date.parse(end) - Date.now()) / 60_000).toBeCloseTo(60, 0);

  expect((await register(server, newToken, { boot_id: 'gpu-1' })).status).toBe(200);
  expect((await register(server, host.token, { boot_id: 'gpu-1' })).status).toBe(401);
  await page.goto(`/admin/workers/${host.id}`);
  await expect(token).not.toContainText('Previous token expires');
  expect(await page.content()).not.toContain(newToken);
  host.close();
});

test('two agents with one token raise an alert that stays until a user dismisses it', async ({ page, server }) => {
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await sendAsAgent(server, token, 'register', { protocol: 1, persistent: true, install_id: 'one', host: 'rack-1' });
  expect((await register(server, token, { install_id: 'two', host: 'rack-<b>2</b>' })).status).toBe(409);
  await signIn(page, server);
  await page.goto('/admin/workers');
  await expect(page.getByRole('row').filter({ hasText: 'gpu-1' })).toContainText('Token used by two agents');
  await page.goto(`/admin/workers/${id}`);
  const alert = page.getByRole('main').getByRole('alert');
  await expect(alert).toContainText('Token used by two agents');
  await expect(alert).toContainText('A second agent on rack-<b>2</b> tried to use this worker’s token and was rejected.');
  await picture(page, 'token-alarm');
  await expectAccessible(page);
  await page.reload();
  await alert.getByRole('button', { name: 'This was me' }).click();
  await expect(page.locator('#content').getByText('Alert dismissed.')).toBeVisible();
  await expect(alert).toHaveCount(0);
  expect((await worker(server, id)).token_conflict).toBe(null);
});

test('the page that waits for the first contact shows a rejected agent', async ({ page, server, context }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  const contact = page.locator('.contact');
  await expect(contact.getByRole('listitem'), 'a later visit shows the causes at once').toHaveCount(5);
  await expect(contact).not.toContainText('Agent rejected');
  expect((await register(server, 'wt_cut', { name: 'gpu-1' })).status).toBe(401);
  if (!(test.info().project.use.javaScriptEnabled ?? true)) await page.reload();
  await expect(contact).toContainText('Agent rejected');
  await expect(contact).toContainText('from 127.0.0.1');
  await expect(contact).toContainText('its token is invalid');
  await expectAccessible(page);
  for (const [width, theme] of [[1280, 'light'], [380, 'dark']] as const) {
    await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
    await page.setViewportSize({ width, height: 800 });
    await page.reload();
    await picture(page, `contact-rejected-${width}`);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }
});
