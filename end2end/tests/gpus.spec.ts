// Every GPU of the fleet, as tiles and as tables, with and without JavaScript.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { Host } from '../host';
import { makeWorker, registerGpus, signIn, signInAs, submit, reportReadings } from '../steps';

test('GPUs of the fleet are shown as tiles or tables, filtered by state', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/fleet/gpus');
  await expect(page.getByText('No GPUs yet')).toBeVisible();
  const { token } = await makeWorker(server, 'rack-1');
  await registerGpus(server, token, 4);
  await reportReadings(server, token, [
    { uuid: 'GPU-0', utilization_percent: 97, memory_used_gb: 61.5, temperature_celsius: 71, power_watts: 390, power_limit_watts: 400 },
    { uuid: 'GPU-1', unavailable: { reason: 'quarantined', detail: 'XID 79: <b>the GPU</b> has fallen off the bus' } },
    { uuid: 'GPU-2', temperature_celsius: 40, unavailable: { reason: 'in_use', detail: 'process 4711 (python)' } },
  ]);
  await makeWorker(server, 'no-gpus-here');
  await page.goto('/fleet/gpus');
  const tile = (index: number) => page.getByRole('listitem').filter({ hasText: `${index}\u{a0}·` });
  await expect(tile(0)).toContainText('97%');
  await expect(tile(0)).toContainText('61.5\u{a0}/\u{a0}80\u{a0}GB');
  await expect(tile(1)).toContainText('XID 79: <b>the GPU</b> has fallen');
  await expect(tile(3)).toContainText('Available');
  await expect(page.getByText('no-gpus-here')).toHaveCount(0);
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    await picture(page, `gpus-${scheme}-${width}`);
    await expectAccessible(page);
  }
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('navigation', { name: 'State' }).getByRole('link', { name: 'Quarantined' }).click();
  await expect(page).toHaveURL(/state=quarantined/);
  await expect(tile(0)).toHaveCount(0);
  await page.getByRole('link', { name: 'Tables' }).click();
  await expect(page).toHaveURL(/state=quarantined&view=table/);
  const rows = page.getByRole('table').getByRole('row');
  await expect(rows).toHaveCount(2);
  await expect(rows.last()).toContainText('Quarantined');
  await expectAccessible(page);
  const search = page.getByRole('searchbox', { name: 'Search' });
  await search.fill('name:rack-2*');
  await search.press('Enter');
  await expect(page).toHaveURL(/state=quarantined&view=table&q=name%3Arack-2/);
  await expect(page.getByText('No matching workers')).toBeVisible();
  await page.goto('/fleet/gpus?q=name:rack-1&state=busy');
  await expect(page.getByText('No matching GPUs')).toBeVisible();
  await search.fill('colour:red');
  await search.press('Enter');
  await expect(page.getByRole('alert').filter({ hasText: 'colour:red' })).toBeVisible();
  await page.goto('/fleet/gpus?state=busy');
  await page.getByRole('link', { name: 'Clear filter' }).click();
  await expect(tile(3)).toBeVisible();
});

test('a GPU shows the user of its job', async ({ page, server }) => {
  const host = await Host.connect(server, 'atlas', { gpus: 1 });
  const job = await submit(server, 'digits');
  await host.run();
  await signIn(page, server);
  await page.goto('/fleet/gpus?view=table');
  const row = page.getByRole('table').getByRole('row').last();
  await expect(row.getByRole('link', { name: 'digits' })).toHaveAttribute('href', `/jobs/${job}`);
  await expect(row).toContainText('admin');
  await picture(page, 'gpus-held-table');
  await page.goto('/fleet/gpus');
  await expect(page.getByRole('listitem').filter({ hasText: '0\u{a0}·' })).toContainText('admin');
  await picture(page, 'gpus-held-tiles');
  host.close();
});

test('a long list of workers is paged', async ({ page, server }) => {
  const names = Array.from({ length: 51 }, (_, n) => `rack-${String(n).padStart(2, '0')}`);
  for (const name of names) await registerGpus(server, (await makeWorker(server, name)).token, 1);
  await signIn(page, server);
  await page.goto('/fleet/gpus');
  await expect(page.getByText('1–50 of 51')).toBeVisible();
  await expect(page.getByRole('navigation', { name: 'State' })).toContainText('All51');
  await page.getByRole('link', { name: 'Next' }).click();
  await expect(page.getByText('51–51 of 51')).toBeVisible();
  await expect(page.getByRole('heading', { level: 2 })).toHaveText([/rack-50/]);
  await page.getByRole('link', { name: 'Previous' }).click();
  await expect(page.getByRole('heading', { level: 2 })).toHaveCount(50);
});

test('the grid shows hundreds of GPUs, each named by its state and load', async ({ page, server }) => {
  const names = Array.from({ length: 24 }, (_, n) => `rack-${String(n).padStart(2, '0')}`);
  for (const [n, name] of names.entries()) {
    const { token } = await makeWorker(server, name, n < 20 ? { team: n < 8 ? 'nlp' : 'vision' } : {});
    await registerGpus(server, token, 8);
    if (n > 0) continue;
    await reportReadings(server, token, [
      { uuid: 'GPU-0', utilization_percent: 97 },
      { uuid: 'GPU-1', unavailable: { reason: 'quarantined', detail: 'XID 79' } },
      { uuid: 'GPU-2', utilization_percent: 40, unavailable: { reason: 'in_use', detail: 'process 4711' } },
    ]);
  }
  await signIn(page, server);
  await page.goto('/fleet/gpus');
  await page.getByRole('link', { name: 'Squares' }).click();
  await expect(page).toHaveURL(/view=squares/);
  const squares = page.getByRole('link', { name: /^rack-\d+\s· \d, / });
  await expect(squares).toHaveCount(192);
  const first = page.getByRole('link', { name: /^rack-00\s· 0, .*97%/ });
  await expect(first).toHaveAttribute('title', /97%/);
  await expect(first).toHaveAttribute('href', /^\/admin\/workers\/w_.*show=gpus$/);
  await expect(page.getByRole('link', { name: /^rack-00\s· 1, .*Quarantined/ })).toBeVisible();
  const box = (await first.boundingBox())!;
  expect(Math.min(box.width, box.height)).toBeGreaterThanOrEqual(24);
  await expect(page.getByRole('list', { name: 'Legend' }).getByRole('listitem')).toHaveCount(6);
  await page.getByLabel('Group by').selectOption({ label: 'team' });
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(page).toHaveURL(/group=label\.team/);
  await expect(page).toHaveURL(/view=squares/);
  const groups = page.getByRole('heading', { level: 2 });
  await expect(groups).toHaveText([/^team = nlp.*8 workers.*Available 6[12]/, /^team = vision.*12 workers/, /^No label team.*4 workers/]);
  await expect(page.getByLabel('Group by')).toHaveValue('label.team');
  await expect(squares).toHaveCount(192);
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    await picture(page, `gpus-squares-${scheme}-${width}`);
    await expectAccessible(page);
  }
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
  await page.getByRole('link', { name: 'Tables' }).click();
  await expect(groups).toHaveCount(3);
  await expect(page.getByRole('heading', { level: 3 })).toHaveCount(24);
});

for (const role of ['viewer', 'researcher']) {
  test(`a ${role} sees which jobs use the GPUs, but no actions`, async ({ page, server }) => {
    const host = await Host.connect(server, 'atlas', { gpus: 2 });
    const job = await submit(server, 'digits');
    await host.run();
    await host.sendReadings([
      { uuid: host.gpus[0], utilization_percent: 97 },
      { uuid: host.gpus[1], unavailable: { reason: 'quarantined', detail: 'XID 79' } },
    ]);
    await signInAs(page, server, 'vic', role);
    await page.getByRole('link', { name: 'Fleet', exact: true }).first().click();
    await expect(page.getByRole('row').filter({ hasText: 'atlas' }).getByRole('link', { name: 'digits' })).toHaveAttribute('href', `/jobs/${job}`);
    await page.getByRole('navigation', { name: 'Fleet' }).getByRole('link', { name: 'GPUs' }).click();
    const tile = (index: number) => page.getByRole('listitem').filter({ hasText: `${index}\u{a0}·` });
    await expect(tile(0)).toContainText('97%');
    await expect(tile(0)).toContainText('admin');
    await expect(tile(0).getByRole('link')).toHaveAttribute('href', `/jobs/${job}`);
    await expect(tile(1)).toContainText('XID 79');
    await expect(page.getByRole('main').locator('form[method=post]')).toHaveCount(0);
    await expectAccessible(page);
    await picture(page, `gpus-${role}`);
    await page.getByRole('link', { name: 'Tables' }).click();
    await expect(page.getByRole('table').getByRole('link', { name: 'digits' }).first()).toHaveAttribute('href', `/jobs/${job}`);

    // Its worker shows its GPUs too, without the actions that an admin has there.
    await page.getByRole('main').getByRole('link', { name: 'atlas' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('atlas');
    await expect(page.getByRole('main')).toContainText('XID 79');
    for (const action of ['Drain', 'Edit', 'Delete']) await expect(page.getByRole('main').getByText(action, { exact: true })).toHaveCount(0);
    const drain = await page.request.post(`/api/admin/workers/${host.id}/drain`, { headers: { origin: server.url } });
    expect((await drain.json()).code).toBe('permission_denied');
    expect((await (await server.api(`/api/admin/workers/${host.id}`)).json()).draining).toBe(false);
    host.close();
  });
}
