// Conveniences of hydrated pages: shortcuts, the search overlay, notifications, and times in the user's zone.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { waitForJob, live, makeWorker, signIn, submit } from '../steps';

const SEARCH = 'Search for anything';

test('sign in, submit, cancel, drain and undo work by keyboard', async ({ page, server }) => {
  test.setTimeout(60_000);
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  const keys = page.keyboard;
  /** Presses Tab until an element that matches the selector has the focus. */
  const tabTo = async (selector: string) => {
    for (let steps = 0; steps < 60; steps += 1) {
      if (await page.evaluate((selector) => document.activeElement?.matches(selector) ?? false, selector)) return;
      await keys.press('Tab');
    }
    throw new Error(`${selector} is not reached by Tab`);
  };

  await page.goto('/login');
  await tabTo('[name=password]');
  await keys.type(server.adminToken);
  await keys.press('Enter');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');
  await live(page);

  await keys.press('g');
  await keys.press('t');
  await expect(page).toHaveURL(/\/train/);
  await tabTo('input[name=config]');
  await keys.press('Space');
  await keys.press('Enter');
  await expect(page).toHaveURL(/\/jobs\/j_/);
  const job = page.url().split('/').pop() ?? '';
  await live(page);

  await keys.press('Control+k');
  await keys.type('cancel job');
  await expect(page.getByRole('option', { name: /Cancel job: / })).toBeVisible();
  await keys.press('Enter');
  await expect(page.getByRole('button', { name: 'Cancel this job' })).toBeVisible();
  await tabTo('.confirm-body form button');
  await keys.press('Enter');
  await waitForJob(server, job, 'cancelled');
  await expect(page.locator('.toast')).toContainText('Cancellation requested.');

  await keys.press('g');
  await keys.press('w');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Workers');
  await expect(page.getByRole('link', { name: 'gpu-1' })).toBeVisible();
  await keys.press('j');
  await expect(page.getByRole('link', { name: 'gpu-1' })).toBeFocused();
  await keys.press('Enter');
  await expect(page).toHaveURL(`${server.url}/admin/workers/${id}`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('gpu-1');
  const draining = async () => (await (await server.api(`/api/admin/workers/${id}`)).json()).draining;

  await keys.press('d');
  await expect(page.getByRole('button', { name: 'Drain worker' })).toBeVisible();
  expect(await draining(), 'the key only opens the confirmation').toBe(false);
  await tabTo('.confirm-body form button');
  await keys.press('Enter');
  await expect.poll(draining).toBe(true);
  await expect(page.getByRole('button', { name: 'Resume' }), 'the focus moves to the new button').toBeFocused();
  await expect(page.getByRole('button', { name: 'Undo' })).toBeVisible();
  await keys.press('u');
  await expect(page.getByRole('button', { name: 'Undo' })).toBeFocused();
  await picture(page, 'toast');
  await keys.press('Enter');
  await expect.poll(draining).toBe(false);
});

test('the search overlay is announced, and returns the focus when it closes', async ({ page, server, context }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await makeWorker(server, 'gpu-2');
  await submit(server, 'digits');
  await signIn(page, server);
  await page.goto('/jobs');
  await live(page);
  const button = page.locator('.sidebar .search-button');
  await button.click();
  const field = page.getByRole('dialog').getByRole('combobox', { name: 'Search' });
  await expect(field).toBeFocused();
  await expect(page.getByRole('option', { name: /Overview/ })).toHaveAttribute('aria-selected', 'true');
  await picture(page, 'palette-empty');
  await field.fill('gpu');
  await expect(page.getByRole('option', { name: /gpu-2/ })).toBeVisible();
  await expectAccessible(page);
  await picture(page, 'palette');
  const chosen = async () => page.locator(`#${await field.getAttribute('aria-activedescendant')}`).innerText();
  const first = await chosen();
  await field.press('ArrowDown');
  expect(await chosen()).not.toBe(first);
  await field.press('ArrowUp');
  expect(await chosen()).toBe(first);
  await field.press('Escape');
  await expect(field).toBeHidden();
  await expect(button).toBeFocused();
  expect(page.url()).toBe(`${server.url}/jobs`);

  await page.keyboard.press('Control+k');
  await field.fill('gpu-1');
  await expect(page.getByRole('option').first()).toContainText('gpu-1');
  const opened = context.waitForEvent('page');
  await field.press('Control+Enter');
  expect((await opened).url()).toContain(`/admin/workers/${id}`);
  await expect(field).toBeVisible();
  await field.press('Enter');
  await expect(page).toHaveURL(`${server.url}/admin/workers/${id}`);
  await expect(field).toBeHidden();
});

test('the search overlay stays open if it is reopened immediately', async ({ page, server }) => {
  await signIn(page, server);
  await live(page);
  await page.keyboard.press('Control+k');
  const field = page.getByRole('dialog').getByRole('combobox', { name: 'Search' });
  await expect(field).toBeFocused();
  // The `close` event of a dialog is only dispatched later.
  await page.evaluate(() => {
    document.querySelector<HTMLDialogElement>('dialog.palette')?.close();
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }));
  });
  await expect(page.locator('dialog.palette')).toHaveJSProperty('open', true);
  await expect(field).toBeFocused();
});

test('the list of shortcuts stays open if it is reopened immediately', async ({ page, server }) => {
  await signIn(page, server);
  await live(page);
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await expect(help).toBeVisible();
  await page.evaluate(() => {
    document.querySelector<HTMLDialogElement>('dialog[aria-labelledby=shortcuts]')?.close();
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
  });
  await expect(help).toBeVisible();
  await expect(help).toContainText('Go to GPUs');
});

test('a preference is changed in the search overlay, and the page stays', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/jobs?phase=active');
  await live(page);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('compact');
  await expect(page.getByRole('option').first()).toContainText('Density: Compact');
  await page.keyboard.press('Enter');
  await expect(page.locator('html')).toHaveClass(/is-compact/);
  expect(page.url()).toBe(`${server.url}/jobs?phase=active`);
});

test('? lists the shortcuts, and each opens its page', async ({ page, server }) => {
  await signIn(page, server);
  await live(page);
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await expect(help).toBeVisible();
  await expect(help).toContainText(SEARCH);
  await expect(help).toContainText('Go to GPUs');
  await expectAccessible(page);
  await picture(page, 'shortcuts');
  await page.keyboard.press('g');
  await page.keyboard.press('j');
  await expect(help, 'a dialog has its own keys').toBeVisible();
  await page.keyboard.press('Escape');
  await expect(help).toBeHidden();
  for (const [key, path] of [['j', '/jobs'], ['w', '/admin/workers'], ['g', '/fleet/gpus'], ['o', '/']] as const) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await expect(page).toHaveURL(`${server.url}${path}`);
  }
});

test('a click outside closes an open confirmation', async ({ page, server }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  await live(page);
  const confirmation = page.locator('details.confirm').first();
  await confirmation.locator('summary').click();
  await expect(confirmation).toHaveAttribute('open');
  await confirmation.locator('p').first().click();
  await expect(confirmation, 'a click inside leaves it open').toHaveAttribute('open');
  await page.getByRole('heading', { level: 1 }).click();
  await expect(confirmation).not.toHaveAttribute('open');
});

test('the filter shortcut focuses the search field of the job list', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/jobs');
  await live(page);
  await page.keyboard.press('/');
  await expect(page.locator('main form input:focus')).toHaveCount(1);
});

test('shortcuts are text in input fields, and can be turned off', async ({ page, server, context }) => {
  await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  await page.keyboard.press('/');
  const field = page.getByRole('searchbox');
  await expect(field).toBeFocused();
  await page.keyboard.type('j?gjd');
  await expect(field).toHaveValue('j?gjd');
  await expect(page).toHaveURL(`${server.url}/admin/workers`);

  await context.addCookies([{ name: 'keys', value: 'off', url: server.url }]);
  await page.goto('/admin/workers');
  await live(page);
  for (const key of ['?', 'g', 'j', '/']) await page.keyboard.press(key);
  await expect(page.locator('body')).toBeFocused();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('dialog').getByRole('combobox')).toBeFocused();
});

test('the message of a rejected action stays, has its request ID, and can be read on other pages', async ({ page, server, consoleErrors }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  await live(page);
  await page.route('**/ui/workers/*/drain', (route) => route.fulfill({
    status: 503,
    contentType: 'application/problem+json',
    body: JSON.stringify({ type: 'about:blank', title: 'Unavailable', status: 503, code: 'database_unavailable', detail: 'The <b>database</b> is away.', request_id: 'req_42' }),
  }));
  await page.keyboard.press('d');
  await page.getByRole('button', { name: 'Drain worker' }).click();
  const toast = page.locator('[role=alert] .toast');
  await expect(toast).toContainText('The <b>database</b> is away.');
  await expect(toast).toContainText('req_42');
  await expect(page.locator('.confirm summary'), 'the optimistic update is reverted').toHaveText('Drain');
  await expectAccessible(page);
  await picture(page, 'toast-rejected');
  await toast.getByRole('button', { name: 'Dismiss' }).click();
  await expect(toast).toHaveCount(0);

  await page.goto('/preferences');
  await page.goto('/jobs');
  const notes = page.locator('.sidebar .notes');
  await notes.locator('summary').click();
  await expect(notes).toContainText('The <b>database</b> is away.');
  await expect(notes).toContainText('req_42');
  await expectAccessible(page);
  await picture(page, 'notes');
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !line.includes('503')));
});

test.describe('in the reader’s time zone', () => {
  test.use({ timezoneId: 'Asia/Kolkata' });

  test('a time is exact on focus, in local time or UTC', async ({ page, server, context }) => {
    const job = await submit(server, 'digits');
    await signIn(page, server);
    const age = page.locator('.byline .moment');
    const bubble = async () => {
      await age.focus();
      return age.evaluate((element) => getComputedStyle(element, '::after').content);
    };
    await page.goto(`/jobs/${job}`);
    await live(page);
    await expect(age).toHaveAttribute('title', /UTC\+05:30$/);
    expect(await bubble()).toContain('UTC+05:30');
    await picture(page, 'moment');
    // The server has already rendered this text, so hydration changes nothing.
    expect(await (await page.request.get(`/jobs/${job}`)).text()).toMatch(/title="[^"]+ UTC\+05:30"/);
    await context.addCookies([{ name: 'zone', value: 'utc', url: server.url }]);
    await page.goto(`/jobs/${job}`);
    await live(page);
    await expect(age).toHaveAttribute('title', /\d UTC$/);
    expect(await bubble()).not.toContain('UTC+');
    await context.addCookies([{ name: 'zone', value: 'local', url: server.url }]);
    // In a table the full time is shown with the focused row, so that it takes no Tab stop.
    await page.goto('/jobs');
    await live(page);
    await page.keyboard.press('j');
    const tableAge = page.getByRole('row').filter({ hasText: 'digits' }).locator('td .moment');
    expect(await tableAge.evaluate((element) => getComputedStyle(element, '::after').content)).toContain('UTC+05:30');
  });

  test('a page that was rendered without the time zone uses it after hydration', async ({ page, server, context }) => {
    await submit(server, 'digits');
    await signIn(page, server);
    await context.clearCookies({ name: 'time_zone' });
    expect(await (await page.request.get('/jobs')).text()).toMatch(/title="[^"]+ UTC"/);
    // Intl loads its data when it is first used, which would delay the first paint.
    await page.addInitScript(() => {
      const record = Object.assign(window, { painted: false, delaysPaint: false });
      requestAnimationFrame(() => (record.painted = true));
      Intl.DateTimeFormat = new Proxy(Intl.DateTimeFormat, {
        apply: (format, self, parameters) => ((record.delaysPaint ||= !record.painted), Reflect.apply(format, self, parameters)),
      });
    });
    await page.goto('/jobs');
    await live(page);
    await expect(page.getByRole('row').filter({ hasText: 'digits' }).locator('.moment').first()).toHaveAttribute('title', /UTC\+05:30$/);
    const cookie = async () => (await context.cookies()).find(({ name }) => name === 'time_zone');
    const zone = await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone);
    await expect.poll(async () => (await cookie())?.value).toBe(zone);
    expect(await cookie()).toMatchObject({ path: '/', sameSite: 'Lax', secure: false });
    expect(await page.evaluate(() => 'delaysPaint' in window && window.delaysPaint)).toBe(false);
  });
});

test('stale data is marked with its age, also on a phone', async ({ page, server, consoleErrors }) => {
  test.setTimeout(90_000);
  await makeWorker(server, 'gpu-1');
  await page.setViewportSize({ width: 380, height: 800 });
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  await server.program.stop();
  await expect(page.locator('.topbar .is-off')).toHaveText(/Offline since \d\d:\d\d/, { timeout: 45_000 });
  await expect(page.locator('.frame')).toHaveClass(/is-stale/);
  expect(await page.locator('.panel').first().evaluate((panel) => getComputedStyle(panel).filter)).toContain('grayscale');
  await picture(page, 'stale-380');
  await server.restart();
  await expect(page.locator('.frame')).not.toHaveClass(/is-stale/, { timeout: 45_000 });
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(line)));
});
