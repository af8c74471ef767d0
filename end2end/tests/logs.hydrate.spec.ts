// The log page with scripts: a log of a million lines, and a growing one.
import type { Page } from '@playwright/test';
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, removeExpected, test, type Server } from '../fixtures';
import { startJob } from '../host';
import { expectNoShift, firstPaint, observeShifts } from '../layout-shifts';
import { signIn } from '../steps';

const MILLION = 1_000_000;

const rows = (page: Page) => page.locator('.log-row');
const row = (page: Page, line: number) => page.locator(`#L${line}`);

/** Returns the numbers of the visible lines, which can be fewer than those in the document. */
async function visibleLines(page: Page): Promise<number[]> {
  return page.getByRole('log').evaluate((sheet) => {
    const view = sheet.getBoundingClientRect();
    const isInView = ({ top, bottom }: DOMRect) => top >= view.top - 1 && bottom <= view.bottom + 1;
    return [...sheet.querySelectorAll('.log-row')].filter((line) => isInView(line.getBoundingClientRect())).map((line) => Number(line.id.slice(1)));
  });
}

/** Expects that all visible lines are loaded and consecutive. */
async function expectComplete(page: Page): Promise<void> {
  await expect.poll(async () => rows(page).filter({ hasNot: page.locator('.log-said') }).count()).toBe(0);
  const lines = await visibleLines(page);
  expect(lines.length).toBeGreaterThan(20);
  expect(lines).toEqual(lines.map((_, at) => lines[0]! + at));
}

test('a log of a million lines is read with few lines in memory', async ({ page, server }) => {
  test.setTimeout(180_000);
  const { host, offer } = await startJob(server);
  const job = offer.job_id;
  let offset = 0;
  for (let from = 0; from < MILLION; from += 20_000) {
    const lines = Array.from({ length: 20_000 }, (_, at) => `2026-01-02 03:04:05 INFO step ${from + at + 1} loss=0.1234 lr=1.0e-5`);
    if (from === 740_000) lines[1_233] = 'RuntimeError: CUDA out of memory';
    offset = await host.log(offer, `${lines.join('\n')}\n`, offset);
  }
  const measureRequest = async (query: string): Promise<number> => {
    const startedAt = Date.now();
    expect((await server.api(`/api/queue/${job}/logs/${query}`)).status).toBe(200);
    return Date.now() - startedAt;
  };
  console.log(`first request took ${await measureRequest('lines?from=999900')} ms, the next ${await measureRequest('lines?from=999900')} and ${await measureRequest('lines?from=500000')} ms`);
  await signIn(page, server);
  // Logged without a limit, because the test machine is shared.
  const startedAt = Date.now();
  await page.goto(`/jobs/${job}/log?attempt=1&line=500000`);
  await expect(page.locator('.is-live:visible').first()).toBeVisible({ timeout: 30_000 });
  await expect(row(page, 500_000)).toBeInViewport();
  const opened = Date.now() - startedAt;
  await expect(row(page, 500_000)).toHaveClass(/is-chosen/);
  await expect(row(page, 500_000)).toContainText('step 500000 ');
  await expectComplete(page);

  const sheet = page.getByRole('log');
  await sheet.focus();
  await page.keyboard.press('End');
  await expect(row(page, MILLION)).toBeInViewport();
  await expect(row(page, MILLION)).toContainText('step 1000000 ');
  await page.keyboard.press('Home');
  await expect(row(page, 1)).toBeInViewport();
  await expectComplete(page);

  // Paging skips no line.
  const before = await visibleLines(page);
  await page.keyboard.press('PageDown');
  await expect(row(page, before.at(-1)!)).toBeInViewport();
  await expect(row(page, before[0]!)).not.toBeInViewport();
  await expectComplete(page);

  // Scroll through the whole log; the document contains few lines at any time.
  const { maxRows, longest } = await sheet.evaluate(async (element) => {
    let longest = 0;
    const observer = new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => { longest = Math.max(longest, duration); }));
    observer.observe({ entryTypes: ['longtask'] });
    const frame = () => new Promise(requestAnimationFrame);
    let maxRows = 0;
    for (let step = 0; step <= 300; step += 1) {
      element.scrollTop = ((element.scrollHeight - element.clientHeight) * step) / 300;
      await frame();
      await frame();
      maxRows = Math.max(maxRows, document.querySelectorAll('.log-row').length);
    }
    observer.disconnect();
    return { maxRows, longest };
  });
  expect(maxRows, 'lines in the document').toBeLessThan(80);
  await expect(row(page, MILLION)).toBeInViewport();
  await expectComplete(page);

  const search = page.getByRole('searchbox', { name: 'Search the log' });
  await search.fill('out of memory');
  const searchedAt = Date.now();
  await search.press('Enter');
  await expect(row(page, 741_234)).toBeInViewport({ timeout: 30_000 });
  await expect(row(page, 741_234).locator('mark')).toHaveText('out of memory');
  await expect(page.getByText('1 of 1', { exact: true })).toBeVisible({ timeout: 30_000 });
  console.log(`a million lines: line 500,000 after ${opened} ms, ${maxRows} rows at most, longest task ${Math.round(longest)} ms, searched in ${Date.now() - searchedAt} ms`);
  await search.fill('step 1000000');
  await search.press('Enter');
  await expect(row(page, MILLION)).toHaveClass(/is-chosen/);
  await search.fill('step 99999');
  await search.press('Enter');
  await expect(row(page, 99_999)).toHaveClass(/is-chosen/);
  await search.press('Shift+Enter');
  await expect(row(page, 999_999)).toHaveClass(/is-chosen/);
  await search.press('Enter');
  await expect(row(page, 99_999)).toHaveClass(/is-chosen/);
});

test('the log follows its end until the user scrolls; one click follows again', async ({ page, server }) => {
  test.setTimeout(90_000);
  const { host, offer } = await startJob(server);
  const job = offer.job_id;
  let offset = await host.log(offer, Array.from({ length: 500 }, (_, at) => `line ${at + 1}\n`).join(''), 0);
  await signIn(page, server);
  await page.goto(`/jobs/${job}/log`);
  await expect(page.locator('.is-live:visible').first()).toBeVisible({ timeout: 30_000 });
  await expect(row(page, 500)).toBeInViewport();
  offset = await host.log(offer, '10%\r', offset);
  await expect(row(page, 501)).toContainText('10%');
  offset = await host.log(offer, '20%\rdone\n', offset);
  await expect(row(page, 501)).toHaveText('501done');
  await expect(row(page, 501)).toBeInViewport();
  await page.getByRole('log').focus();
  await page.keyboard.press('Home');
  await expect(row(page, 1)).toBeInViewport();
  offset = await host.log(offer, 'a\nb\nc\n', offset);
  await page.getByRole('button', { name: '3 new lines' }).click();
  await expect(row(page, 504)).toBeInViewport();
  await expect(page.getByRole('button', { name: /new lines?/ })).toHaveCount(0);
  await host.log(offer, 'd\n', offset);
  await expect(row(page, 505)).toBeInViewport();
});

test('lines are selected with the mouse, and shortcuts open the search', async ({ page, server }) => {
  test.setTimeout(90_000);
  const { host, offer } = await startJob(server);
  const job = offer.job_id;
  await host.log(offer, Array.from({ length: 500 }, (_, at) => `line ${at + 1} ${'wide '.repeat(at === 9 ? 200 : 1)}\n`).join(''), 0);
  await signIn(page, server);
  await page.goto(`/jobs/${job}/log?line=12`);
  await expect(page.locator('.is-live:visible').first()).toBeVisible({ timeout: 30_000 });
  await expect(row(page, 12)).toBeInViewport();
  const top = await page.getByRole('log').evaluate((sheet) => sheet.scrollTop);
  await row(page, 14).getByRole('link').click();
  await expect(page).toHaveURL(/line=14$/);
  await row(page, 11).getByRole('link').click({ modifiers: ['Shift'] });
  await expect(page).toHaveURL(/line=11-14$/);
  await expect(page.locator('.log-row.is-chosen')).toHaveCount(4);
  expect(await page.getByRole('log').evaluate((sheet) => sheet.scrollTop), 'the scroll position stays').toBe(top);
  await page.goBack();
  await expect(page.locator('.log-row.is-chosen')).toHaveCount(1);

  const search = page.getByRole('searchbox', { name: 'Search the log' });
  await page.locator('body').press('/');
  await expect(search).toBeFocused();
  await search.press('/');
  await expect(search).toHaveValue('/');
  await page.getByRole('log').focus();
  await page.keyboard.press('Control+f');
  await expect(search).toBeFocused();

  // Wrapped lines are higher, but Home and End still reach the first and last line.
  await page.getByRole('link', { name: 'Wrap lines' }).click();
  await page.getByRole('log').focus();
  await page.keyboard.press('Home');
  await expect(row(page, 1)).toBeInViewport();
  await expect.poll(async () => (await row(page, 10).boundingBox())?.height ?? 0).toBeGreaterThan(30);
  await page.keyboard.press('End');
  await expect(row(page, 500)).toBeInViewport();
});

/** Serves the pages of `server`, each in two parts: the second after the browser has painted the first. No script is served. */
async function slowProxy(server: Server, page: Page): Promise<HttpServer> {
  const proxy = createServer(async (request, response) => {
    if (request.url!.endsWith('.js') || request.url!.endsWith('.wasm')) return response.writeHead(404).end();
    const upstream = await fetch(server.url + request.url, { headers: { cookie: request.headers.cookie ?? '' } });
    const type = upstream.headers.get('content-type') ?? '';
    const body = Buffer.from(await upstream.arrayBuffer());
    response.writeHead(upstream.status, { 'content-type': type });
    if (!type.startsWith('text/html')) return response.end(body);
    const half = body.indexOf('id="L', body.length / 2);
    response.write(body.subarray(0, half));
    await firstPaint(page);
    return response.end(body.subarray(half));
  });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
  return proxy;
}

test('lines do not move while the page is still loading', async ({ page, server, consoleErrors }) => {
  const { host, offer } = await startJob(server);
  await host.log(offer, Array.from({ length: 600 }, (_, at) => `line ${at + 1}\n`).join(''));
  await signIn(page, server);
  const proxy = await slowProxy(server, page);
  await observeShifts(page);
  await page.goto(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/jobs/${offer.job_id}/log`);
  await expect(row(page, 600)).toBeInViewport();
  await expectNoShift(page, 'log');
  proxy.close();
  removeExpected(consoleErrors, /Failed to (load resource|fetch dynamically imported module)/);
});
