// An open page during problems: its session ends, or its data is unavailable.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, removeExpected, picture, test } from '../fixtures';
import { startJob } from '../host';
import { makeWorker, PASSWORD, signIn, signInAs } from '../steps';

// Each test waits for the retries of a page.
test.describe.configure({ timeout: 120_000 });

/** A problem response of the server. */
const problem = (status: number, detail: string) => ({
  status,
  contentType: 'application/problem+json',
  body: JSON.stringify({ type: 'about:blank', title: 'Problem', status, code: 'database_unavailable', detail, request_id: 'req_42' }),
});

/** Waits until the page receives events, even on a busy machine. */
async function live(page: Page): Promise<void> {
  await expect(page.locator('.is-live:visible').first()).toBeVisible({ timeout: 30_000 });
}

const connectionStatus = (page: Page) => page.locator('.link-state:visible').first();
const sessionEnded = (page: Page) => page.getByRole('alert').filter({ hasText: 'Your session has ended' });

test('a session that ends elsewhere ends in all tabs; after sign-in each tab returns to its page', async ({ page, context, server, browser, consoleErrors }) => {
  await signInAs(page, server, 'ada', 'lead');
  await page.goto('/jobs?status=running&user=ada');
  await live(page);
  const second = await context.newPage();
  await second.goto('/');
  await live(second);

  const otherContext = await browser.newContext({ baseURL: server.url });
  const otherPage = await otherContext.newPage();
  await otherPage.goto('/login');
  await otherPage.getByLabel('Name').fill('ada');
  await otherPage.getByLabel('Password').fill(PASSWORD);
  await otherPage.getByRole('button', { name: 'Sign in' }).click();
  await expect(otherPage).toHaveURL(`${server.url}/`);
  const { sessions } = await (await otherPage.request.get('/api/account/sessions')).json();
  const first = sessions.find(({ current }: { current: boolean }) => !current);
  expect((await otherPage.request.delete(`/api/account/sessions/${first.id}`)).ok()).toBe(true);
  await otherContext.close();

  for (const tab of [page, second]) {
    await expect(sessionEnded(tab)).toBeVisible();
    await expect(connectionStatus(tab)).toHaveText('Signed out');
    await expect(tab.locator('.frame')).toHaveClass(/is-stale/);
  }
  await expectAccessible(page);
  await picture(page, 'session-over-1280');
  await page.setViewportSize({ width: 380, height: 800 });
  await picture(page, 'session-over-380');
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(380);
  await page.setViewportSize({ width: 1280, height: 800 });

  await sessionEnded(page).getByRole('link', { name: 'Sign in' }).click();
  await expect(page).toHaveURL(/\/login\?next=/);
  await expect(page.getByRole('alert').filter({ hasText: 'You were signed out' })).toBeVisible();
  await picture(page, 'login-over');
  await page.getByLabel('Name').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page).toHaveURL(`${server.url}/jobs?status=running&user=ada`);
  await live(page);
  // As when the user returns to its window.
  await second.evaluate(() => window.dispatchEvent(new Event('focus')));
  await expect(sessionEnded(second), 'the other tab continues without a reload').toHaveCount(0);
  await live(second);
  removeExpected(consoleErrors, /status of 401|ERR_INCOMPLETE|MIME type/);
});

test('data that cannot be refreshed is marked as stale until a refresh succeeds', async ({ page, server, consoleErrors }) => {
  await makeWorker(server, 'gpu-1');
  await page.setViewportSize({ width: 380, height: 800 });
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  let requestCount = 0;
  await page.route('**/api/admin/workers?*', (route) => {
    requestCount += 1;
    return route.fulfill(problem(503, 'The database does not answer.'));
  });
  await makeWorker(server, 'came-later');
  await expect(connectionStatus(page)).toHaveText(/^Updated \d\d:\d\d UTC$/);
  await expect(page.locator('.frame')).toHaveClass(/is-stale/);
  await expect(page.getByRole('link', { name: 'gpu-1' }), 'known values stay').toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(380);
  await picture(page, 'refetch-failed-380');
  await expect.poll(() => requestCount, { timeout: 15_000 }).toBeGreaterThan(2);
  await page.unroute('**/api/admin/workers?*');
  await expect(page.getByRole('link', { name: 'came-later' })).toBeVisible({ timeout: 20_000 });
  await live(page);
  await expect(page.locator('.frame')).not.toHaveClass(/is-stale/);
  removeExpected(consoleErrors, /status of 503/);
});

test('a page says that its worker was deleted', async ({ page, server, consoleErrors }) => {
  const { worker_id: id } = await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  await live(page);
  expect((await server.api(`/api/admin/workers/${id}`, { method: 'DELETE' })).ok).toBe(true);
  await expect(connectionStatus(page)).toHaveText('Not found');
  await page.locator('.sidebar').getByRole('link', { name: 'Workers' }).click();
  await live(page);
  removeExpected(consoleErrors, /status of 404/);
});

test('a page says when it will reconnect', async ({ page, server, consoleErrors }) => {
  await signIn(page, server);
  await page.goto('/jobs');
  await live(page);
  await page.route('**/api/events*', (route) => route.abort());
  await server.restart();
  await expect(connectionStatus(page)).toHaveText(/^Reconnecting\d+\ss$/, { timeout: 15_000 });
  await page.unroute('**/api/events*');
  await live(page);
  removeExpected(consoleErrors, /ERR_/);
});

test.describe('in another time zone', () => {
  test.use({ timezoneId: 'Asia/Kolkata' });

  test('“offline since” uses and names the reader’s time zone', async ({ page, context, server, consoleErrors }) => {
    await page.clock.install();
    await signIn(page, server);
    for (const [zone, ahead, name] of [['local', 330, 'UTC+05:30'], ['utc', 0, 'UTC']] as const) {
      await context.addCookies([{ name: 'zone', value: zone, url: server.url }]);
      await page.goto('/jobs');
      await live(page);
      const now = () => page.evaluate(() => Date.now());
      const before = await now();
      await page.route('**/api/events*', (route) => route.abort());
      await server.restart();
      await expect(connectionStatus(page)).toHaveText(/^Reconnecting/);
      const times = [before, await now()].map((at) => new Date(at + ahead * 60_000).toISOString().slice(11, 16));
      // Only a connection that stays lost counts as offline.
      await expect(async () => {
        await page.clock.fastForward(16_000);
        await expect(connectionStatus(page)).toHaveText(/^Offline since/, { timeout: 1_000 });
      }).toPass({ timeout: 30_000 });
      expect(times.map((time) => `Offline since ${time} ${name}`)).toContain(await connectionStatus(page).innerText());
      await page.unroute('**/api/events*');
    }
    removeExpected(consoleErrors, /ERR_/);
  });
});

test('log lines that cannot be fetched are requested again, automatically and by a button', async ({ page, server, consoleErrors }) => {
  // While only the button may fetch them again, the delays of automatic retries do not end.
  await page.addInitScript(() => {
    const set = window.setTimeout;
    window.setTimeout = ((handler: TimerHandler, delay?: number) => set(handler, 'holdRetries' in window && (delay ?? 0) >= 1_000 ? 2 ** 30 : delay)) as typeof set;
  });
  const { host, offer } = await startJob(server);
  let offset = await host.log(offer, Array.from({ length: 5_000 }, (_, at) => `line ${at + 1}\n`).join(''));
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}/log`);
  await live(page);
  await page.evaluate(() => Object.assign(window, { holdRetries: true }));
  await page.route('**/logs/lines*', (route) => route.fulfill(problem(500, 'It failed.')));
  await page.getByRole('log').focus();
  await page.keyboard.press('Home');
  const missing = page.getByRole('alert').filter({ hasText: 'Some lines could not be loaded' });
  await expect(missing).toContainText('req_42');
  await expectAccessible(page);
  await picture(page, 'log-missing');
  await page.unroute('**/logs/lines*');
  await missing.getByRole('button', { name: 'Try again' }).click();
  await expect(page.locator('#L1')).toContainText('line 1');
  await expect(missing).toHaveCount(0);

  await page.evaluate(() => Reflect.deleteProperty(window, 'holdRetries'));
  await page.getByRole('log').focus();
  await page.keyboard.press('End');
  await expect(page.locator('#L5000')).toContainText('line 5000');
  await page.route('**/logs/lines*', (route) => route.abort());
  offset = await host.log(offer, 'another\n', offset);
  await expect(missing).toBeVisible();
  await page.unroute('**/logs/lines*');
  await expect(page.locator('#L5001')).toContainText('another', { timeout: 15_000 });
  await expect(missing).toHaveCount(0);
  removeExpected(consoleErrors, /status of 500|ERR_FAILED/);
});

test('matches in a log can be visited by keyboard', async ({ page, server }) => {
  const { host, offer } = await startJob(server);
  await host.log(offer, Array.from({ length: 400 }, (_, at) => `${at % 100 === 42 ? 'needle' : 'hay'} ${at + 1}\n`).join(''));
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}/log?line=1`);
  await live(page);
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  await page.keyboard.press('Enter');
  const chosen = page.locator('.log-row.is-chosen');
  await expect(chosen).toHaveText('43needle 43');
  const next = page.getByRole('button', { name: 'Next match' });
  for (let step = 0; step < 5 && !(await next.evaluate((element) => element === document.activeElement)); step += 1) await page.keyboard.press('Tab');
  await expect(next).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(chosen).toHaveText('143needle 143');
  await expect(next).toBeFocused();
  await page.keyboard.press(' ');
  await expect(chosen).toHaveText('243needle 243');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await expect(chosen).toHaveText('143needle 143');
  await expect(page.getByText('2 of 4', { exact: true })).toBeVisible();
});

test('selected lines and their address are copied', async ({ page, server, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const { host, offer } = await startJob(server);
  await host.log(offer, Array.from({ length: 50 }, (_, at) => `\u001b[31mline\u001b[0m ${at + 1}\n`).join(''));
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}/log?line=11-13`);
  await live(page);
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole('button', { name: 'Copy lines' }).click();
  await expect(page.getByRole('button', { name: 'Copied' })).toBeVisible();
  expect(await copied()).toBe('line 11\nline 12\nline 13\n');
  await page.getByRole('button', { name: 'Copy link' }).click();
  await expect.poll(copied).toBe(page.url());
  host.close();
});

test('a chart without data because of an error says so', async ({ page, server, consoleErrors }) => {
  await makeWorker(server, 'gpu-1');
  await signIn(page, server);
  await page.goto('/jobs');
  await live(page);
  await page.route('**/api/admin/gpus/history*', (route) => route.fulfill(problem(500, 'It failed.')));
  await page.locator('.sidebar').getByRole('link', { name: 'Overview' }).click();
  await expect(page.getByRole('alert').filter({ hasText: 'It failed.' })).toContainText('Request ID: req_42');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');
  await picture(page, 'chart-failed');
  removeExpected(consoleErrors, /status of 500/);
});

test.describe('in another language', () => {
  test.use({ locale: 'es' });

  test('errors of the API are shown in that language', async ({ page, server, consoleErrors }) => {
    await makeWorker(server, 'gpu-1');
    await signIn(page, server);
    await page.goto('/admin/workers');
    await live(page);
    const search = page.locator('form[role=search] input[name=q]');
    await search.fill('nope:1');
    await search.press('Enter');
    await expect(page).toHaveURL(/q=nope/);
    await expect(page.getByRole('alert').filter({ hasText: '«nope:1»' })).toBeVisible();
    removeExpected(consoleErrors, /status of 422/);
  });
});

test('a followed log and a job page continue after a restart of the server', async ({ page, context, server, consoleErrors }) => {
  const { host, offer } = await startJob(server);
  const offset = await host.log(offer, 'before\n');
  await signIn(page, server);
  await page.goto(`/jobs/${offer.job_id}/log`);
  await live(page);
  await expect(page.locator('#L1')).toContainText('before');
  const second = await context.newPage();
  await second.goto(`/jobs/${offer.job_id}`);
  await live(second);
  await server.restart();
  await host.log(offer, 'after\n', offset);
  await host.progress(offer, [{ step: 7, total_steps: 10, at: new Date().toISOString(), loss: 1 }]);
  await expect(page.locator('#L2')).toContainText('after', { timeout: 30_000 });
  await live(page);
  await expect(second.locator('.log')).toContainText('after', { timeout: 30_000 });
  await expect(second.getByRole('progressbar').first()).toHaveAttribute('aria-valuenow', '70');
  await live(second);
  host.close();
  removeExpected(consoleErrors, /ERR_/);
});

test('a page that missed too many notifications fetches everything', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  const setVisibility = (visibility: string) => page.evaluate((state) => {
    Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, visibility);
  await setVisibility('hidden');
  await makeWorker(server, 'while-nobody-listened');
  // The page resumes after a version that the server no longer knows.
  await page.route('**/api/events*', (route) => {
    const url = new URL(route.request().url());
    url.searchParams.set('after', 'forgotten-1');
    return route.continue({ url: url.href });
  });
  await setVisibility('visible');
  await expect(page.getByRole('link', { name: 'while-nobody-listened' })).toBeVisible();
});

test('charts are distinguishable in forced colors', async ({ page, server }) => {
  const { host, offer } = await startJob(server);
  await host.progress(offer, [{ step: 4, total_steps: 10, at: new Date().toISOString(), loss: 1 }]);
  await host.sendReadings(host.gpus.map((uuid, index) => ({ uuid, utilization_percent: 20 * index, memory_used_gb: 20 })));
  await host.log(offer, '\u001b[41mred\u001b[0m \u001b[1;38;5;31mcyan\u001b[0m \u001b[3;4mslanted\u001b[0m \u001b[7minverse\n');
  await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' });
  await signIn(page, server);
  for (const [name, path] of [['job', `/jobs/${offer.job_id}`], ['log', `/jobs/${offer.job_id}/log?line=1`], ['gpus', '/fleet/gpus'], ['usage', '/usage'], ['workers', '/admin/workers']] as const) {
    await page.goto(path);
    await picture(page, `forced-${name}`);
    const indistinguishable = await page.evaluate(() => [...document.querySelectorAll('.scale-fill')].filter((fill) => {
      const track = fill.previousElementSibling;
      return track && getComputedStyle(fill).fill === getComputedStyle(track).fill;
    }).length);
    expect(indistinguishable, `${path}: bars with the color of their track`).toBe(0);
    const animations = await page.evaluate(() => document.getAnimations().length);
    expect(animations, `${path} has animations`).toBe(0);
  }
  host.close();
});
