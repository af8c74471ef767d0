// The fleet: workers, GPUs and the queue in one read-only place for every role, with and without JavaScript.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { Host } from '../host';
import { makeWorker, signIn, signInAs, submit } from '../steps';

for (const role of ['viewer', 'researcher', 'lead', 'admin']) {
  test(`a ${role} sees workers and the queue in the order of dispatch, without actions`, async ({ page, server }) => {
    const host = await Host.connect(server, 'atlas', { gpus: 2, labels: { site: 'graz' } });
    const running = await submit(server, 'digits');
    await host.run();
    await makeWorker(server, 'borea');
    const first = await submit(server, 'digits', { gpu_count: 8, priority: 10, name: 'needs eight GPUs' });
    const second = await submit(server, 'digits', { gpu_count: 8, priority: 50, name: 'goes first' });
    await signInAs(page, server, 'vic', role);
    await page.getByRole('link', { name: 'Fleet', exact: true }).first().click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Fleet');
    const worker = page.getByRole('row').filter({ hasText: 'atlas' });
    await expect(worker.getByRole('link', { name: 'digits' })).toHaveAttribute('href', `/jobs/${running}`);
    const queue = page.getByRole('region', { name: 'Queue' });
    await expect(queue.getByRole('listitem').locator('.row-link')).toHaveText(['goes first', 'needs eight GPUs']);
    await expect(queue.getByRole('listitem').first()).toContainText('8 GPUs');
    await expect(queue.getByRole('link', { name: 'goes first' })).toHaveAttribute('href', `/jobs/${second}`);
    await expect(queue.getByRole('link', { name: 'needs eight GPUs' })).toHaveAttribute('href', `/jobs/${first}`);
    await expect(page.getByRole('main').locator('form[method=post], input[type=checkbox]')).toHaveCount(0);
    await expect(page.getByRole('link', { name: 'Create worker' })).toHaveCount(0);
    if (role !== 'viewer') return;
    for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 800 });
      await picture(page, `fleet-${scheme}-${width}`);
      await expectAccessible(page);
      expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    }
  });
}

test('the fleet is searched, filtered and sorted in its address', async ({ page, server }) => {
  for (const name of ['atlas', 'borea', 'cygnus']) await makeWorker(server, name, { site: name === 'atlas' ? 'graz' : 'linz' });
  await signIn(page, server);
  await page.goto('/fleet');
  const names = page.getByRole('rowheader').locator('.row-link');
  await expect(names).toHaveText(['atlas', 'borea', 'cygnus']);
  await expect(page.getByRole('region', { name: 'Queue' })).toContainText('No queued jobs.');
  const search = page.getByRole('searchbox', { name: 'Search' });
  await search.fill('label.site=linz');
  await search.press('Enter');
  await expect(page).toHaveURL(/\/fleet\?q=label\.site%3Dlinz/);
  await expect(names).toHaveText(['borea', 'cygnus']);
  await page.getByRole('columnheader', { name: 'Worker' }).getByRole('link').click();
  await expect(page).toHaveURL(/\/fleet\?.*sort=-name/);
  await expect(names).toHaveText(['cygnus', 'borea']);
  await search.fill('colour:red');
  await search.press('Enter');
  await expect(page.getByRole('alert').filter({ hasText: 'colour:red' })).toBeVisible();
  await page.goto('/fleet?q=nowhere');
  await page.getByRole('link', { name: 'Clear filter' }).click();
  await expect(page).toHaveURL(`${server.url}/fleet`);
});

test('the old address of the GPUs is still valid', async ({ page, server }) => {
  await Host.connect(server, 'atlas', { gpus: 2 });
  await signIn(page, server);
  await page.goto('/gpus?view=table&q=atlas');
  await expect(page).toHaveURL(`${server.url}/fleet/gpus?view=table&q=atlas`);
  await expect(page.getByRole('main').getByRole('link', { name: 'atlas' })).toBeVisible();
  await page.getByRole('navigation', { name: 'Fleet' }).getByRole('link', { name: 'Workers' }).click();
  await expect(page).toHaveURL(`${server.url}/fleet`);
});
