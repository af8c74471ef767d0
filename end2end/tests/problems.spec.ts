// Errors are pages in the user's language that link to where to continue.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { makeWorker, signIn, signInAs } from '../steps';

test('a missing permission is named, with the roles that have it', async ({ page, server, consoleErrors }) => {
  await signInAs(page, server, 'lea', 'lead');
  const response = await page.goto('/admin/system');
  expect(response?.status()).toBe(403);
  await expect(page.getByText('admin.system')).toBeVisible();
  await expect(page.getByText('Ask an admin for a role that has it')).toBeVisible();
  await expect(page.getByRole('main').getByRole('alert').getByRole('link')).toHaveAttribute('href', '/');
  await page.goto('/admin/workers/new');
  await expect(page.getByRole('main').getByRole('alert')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Create worker' })).toHaveCount(0);
  await page.goto('/admin/system');
  await picture(page, 'problem-403-1280');
  await expectAccessible(page);
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/status of 403/.test(line)));
});

test('each page names the permission that it requires', async ({ page, server, consoleErrors }) => {
  test.setTimeout(90_000); // axe checks each page
  const { worker_id: id } = await makeWorker(server, 'rack-1');
  const created = await server.api('/api/admin/users', { method: 'POST', body: JSON.stringify({ name: 'vic', role: 'viewer' }) });
  const user = await created.json();
  const token = await server.api(`/api/admin/users/${user.id}/tokens`, { method: 'POST', body: JSON.stringify({ name: 'narrow', scopes: ['job.view.own'] }) });
  await signIn(page, { ...server, adminToken: (await token.json()).secret });
  const pages = {
    '/configs': 'config.view', '/configs/new': 'config.edit', '/configs/digits/edit': 'config.edit', '/secrets': 'job.submit', '/train': 'job.submit',
    '/admin/users': 'admin.users', '/fleet/gpus': 'fleet.view', [`/admin/workers/${id}`]: 'fleet.view', '/admin/workers/new': 'admin.workers',
  };
  for (const [path, permission] of Object.entries(pages)) {
    const response = await page.goto(path);
    expect(response?.status(), path).toBe(403);
    await expect(page.getByText('Access denied'), path).toBeVisible();
    await expect(page.getByText(permission), path).toBeVisible();
    await expectAccessible(page);
  }
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/status of 403/.test(line)));
});

test('the address of a form shows an error page in the frame', async ({ page, server, consoleErrors }) => {
  await signInAs(page, server, 'lea', 'lead');
  const response = await page.goto('/ui/logout');
  expect(response?.status()).toBe(405);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Method not allowed');
  await expect(page.getByText(/^Request ID: \w+/)).toBeVisible();
  await picture(page, 'problem-405-1280');
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Go to the overview' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/status of 405/.test(line)));
});

test.describe('in another language', () => {
  test.use({ locale: 'ja' });

  test('errors are in that language, also before sign-in', async ({ page, consoleErrors }) => {
    await page.setViewportSize({ width: 380, height: 800 });
    await page.emulateMedia({ colorScheme: 'dark' });
    const response = await page.goto('/ui/login');
    expect(response?.status()).toBe(405);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('許可されていないメソッドです');
    await picture(page, 'problem-405-ja-dark-380');
    await expectAccessible(page);
    consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/status of 405/.test(line)));
  });
});
