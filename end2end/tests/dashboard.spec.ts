// The main tasks of users, with and without JavaScript.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { waitForJob, makeWorker, registerGpus, signIn, submit, reportReadings } from '../steps';

test('unauthenticated visitors see the sign-in page, and a wrong token shows an error', async ({ page }) => {
  await page.goto('/admin/workers');
  await expect(page).toHaveURL(/\/login\?next=/);
  await page.getByLabel('Password').fill('st_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByText('Invalid token or code')).toBeVisible();
  await expectAccessible(page);
});

test('a new worker shows its token once, and the command to start the agent', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name').fill('gpu-1');
  await page.getByLabel('Label 1').fill('location=lab');
  await page.getByLabel('Label 2').fill('team=nlp');
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('gpu-1');
  await expect(page.locator('pre', { hasText: 'wt_' }).first()).toBeVisible();
  expect(page.url()).not.toContain('wt_');
  await page.reload();
  await expect(page.getByText(/wt_\w{20}/)).toHaveCount(0);
  const listed = await (await server.api('/api/admin/workers')).json();
  expect(listed.workers[0].labels).toEqual({ location: 'lab', team: 'nlp' });
});

test('a rejected form shows the error and keeps its input', async ({ page, server }) => {
  await makeWorker(server, 'twice');
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name').fill('twice');
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.getByRole('main').getByRole('alert')).toContainText('exists');
  await expect(page.getByLabel('Name')).toHaveValue('twice');
});

test('a worker is drained, resumed and deleted', async ({ page, server }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  await page.locator('summary', { hasText: 'Drain' }).click();
  await page.getByRole('button', { name: 'Drain worker' }).click();
  await expect.poll(async () => (await (await server.api(`/api/admin/workers/${id}`)).json()).draining).toBe(true);
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect.poll(async () => (await (await server.api(`/api/admin/workers/${id}`)).json()).draining).toBe(false);
  await page.getByRole('link', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete worker' }).click();
  await expect(page).toHaveURL(/\/admin\/workers$/);
  expect((await server.api(`/api/admin/workers/${id}`)).status).toBe(404);
});

test('a worker shows readings of its GPUs, and why one is unavailable', async ({ page, server }) => {
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 3);
  await reportReadings(server, token, [
    {
      uuid: 'GPU-0', utilization_percent: 97, memory_used_gb: 61.5, temperature_celsius: 71, power_watts: 390,
      power_limit_watts: 400, clock_mhz: 1410, memory_clock_mhz: 1593, ecc_errors: 3,
    },
    { uuid: 'GPU-1', unavailable: { reason: 'quarantined', detail: 'XID 79: the GPU has fallen off the bus' } },
    { uuid: 'GPU-2', temperature_celsius: 40, unavailable: { reason: 'in_use', detail: 'process 4711 (python)' } },
  ]);
  await signIn(page, server);
  await page.goto('/admin/workers');
  await expect(page.getByRole('row').filter({ hasText: 'gpu-1' })).toContainText('2 GPUs unavailable');
  for (const path of ['/admin/workers', `/admin/workers/bulk?action=drain&id=${id}`, `/admin/workers/${id}/delete`]) {
    await page.goto(path);
    const badges = page.locator('.status:visible', { hasText: '2 GPUs unavailable' });
    const gap = await badges.first().evaluate((badge) => {
      const previousBox = badge.previousElementSibling?.getBoundingClientRect();
      const badgeBox = badge.getBoundingClientRect();
      return previousBox && previousBox.top === badgeBox.top ? badgeBox.left - previousBox.right : 99;
    });
    expect(gap, `${path}: there is a gap between the badges`).toBeGreaterThanOrEqual(4);
  }
  await page.goto(`/admin/workers/${id}?show=gpus`);
  const row = (text: string) => page.getByRole('table', { name: 'GPUs' }).getByRole('row').filter({ hasText: text });
  await expect(row('0\u{a0}·')).toContainText('Available');
  for (const reading of ['61.5\u{a0}/\u{a0}80\u{a0}GB', '97%', '71\u{a0}°C', '390\u{a0}/\u{a0}400\u{a0}W', '1410\u{a0}/\u{a0}1593\u{a0}MHz', 'ECC errors: 3']) {
    await expect(row('0\u{a0}·')).toContainText(reading);
  }
  await expect(row('Quarantined')).toContainText('XID 79: the GPU has fallen off the bus');
  await expect(row('In use (external)')).toContainText('process 4711 (python)');
  for (const [width, height] of [[1280, 900], [380, 900]] as const) {
    await page.setViewportSize({ width, height });
    await picture(page, `worker-gpus-${width}`);
  }
  await expectAccessible(page);
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
});

test('a job is submitted and cancelled', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/train');
  await page.locator('label', { hasText: /^digits-quick/ }).click();
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page).toHaveURL(/\/jobs\/j_/);
  const job = page.url().split('/').pop() ?? '';
  await page.locator('summary', { hasText: 'Cancel job' }).click();
  await page.getByRole('button', { name: 'Cancel this job' }).click();
  await waitForJob(server, job, 'cancelled');
  await page.goto('/jobs');
  await expect(page.getByRole('row').filter({ hasText: 'digits-quick' })).toContainText('Cancelled');
});

test('a finished job shows its log, chart, samples and files', async ({ page, server, agent }) => {
  test.setTimeout(90_000);
  const { token } = await makeWorker(server, 'gpu-1');
  agent({ token, args: ['--persistent'] });
  const job = await submit(server, 'digits-quick');
  await waitForJob(server, job, 'completed');
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  await expect(page.getByText('Completed').first()).toBeVisible();
  await expect(page.getByRole('img', { name: /loss/i })).toBeVisible();
  await expect(page.getByText('model.safetensors').first()).toBeVisible();
  await expect(page.locator('img[src*="validation_images"]').first()).toBeVisible();
  await picture(page, 'job');
});

test('the theme is remembered', async ({ page, server }) => {
  await signIn(page, server);
  await page.locator('.sidebar .account-menu > summary').click();
  await page.getByRole('button', { name: 'Dark' }).first().click();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.goto('/jobs');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});

test('unknown pages, jobs and workers are not found', async ({ page, server, consoleErrors }) => {
  await signIn(page, server);
  for (const path of ['/nowhere', '/jobs/j_none', '/admin/workers/w_none']) {
    const response = await page.goto(path);
    expect(response?.status()).toBe(404);
    await expect(page.getByRole('heading').first()).toBeVisible();
  }
  // The browser logs a document with status 404 as an error.
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !line.includes('404')));
});

for (const theme of ['light', 'dark']) {
  test(`pages are accessible and fit on a phone, ${theme}`, async ({ page, server, context }) => {
    test.setTimeout(120_000);
    const { worker_id: id } = await makeWorker(server, 'a-worker-with-a-rather-long-name.example.com');
    const job = await submit(server, 'digits');
    await signIn(page, server);
    await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
    for (const path of ['/', '/jobs', `/jobs/${job}`, '/train', '/admin/workers', '/admin/workers/new', `/admin/workers/${id}`, `/admin/workers/${id}/edit`]) {
      for (const [width, height] of [[1280, 800], [380, 800]] as const) {
        await page.setViewportSize({ width, height });
        await page.goto(path);
        await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
        const name = path.split('/').filter(Boolean).map((part) => (/^[jw]_/.test(part) ? 'one' : part)).join('-') || 'overview';
        await picture(page, `${name}-${theme}-${width}`);
      }
      await expectAccessible(page);
      const isTooWide = (await page.locator('html').evaluate((html) => html.scrollWidth)) > 380;
      expect(isTooWide, `${path} fits 380 px`).toBe(false);
    }
  });
}

test('a form that was opened before a crash of the server can be submitted after its restart', async ({ page, server, consoleErrors }) => {
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name', { exact: true }).fill('after-the-crash');
  await server.crash();
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('after-the-crash');
  await page.goto('/admin/workers');
  await expect(page.getByRole('link', { name: 'after-the-crash' })).toBeVisible();
  // While the server is down, the browser logs refused connections.
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(line)));
});
