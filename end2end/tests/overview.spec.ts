// The overview: the state of the fleet and its alerts, with and without JavaScript.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { Host } from '../host';
import { live, makeWorker, registerGpus, signIn, signInAs, submit, reportReadings } from '../steps';

test('alerts link to the page where the problem can be fixed', async ({ page, server }) => {
  const { worker_id: id, token } = await makeWorker(server, 'rack-1');
  await registerGpus(server, token, 4);
  await signIn(page, server);
  await page.goto('/');
  const list = page.getByRole('region', { name: 'Needs attention' });
  await expect(list).toContainText('Nothing needs attention.');
  await reportReadings(server, token, [
    { uuid: 'GPU-1', unavailable: { reason: 'quarantined', detail: 'XID 79: <b>the GPU</b> has fallen off the bus' } },
  ]);
  await submit(server, 'digits');
  await page.reload();
  await expect(list).toContainText('GPUs quarantined after an error · 1× · GPU 1: XID 79: <b>the GPU</b> has fallen');
  const tiles = page.locator('.tiles').getByRole('listitem').filter({ hasText: 'GPUs' });
  await expect(tiles.first()).toContainText('1 unavailable');
  const events = page.getByRole('region', { name: 'Recent events' });
  await expect(events.getByRole('listitem')).not.toHaveCount(0);
  await expect(events).toContainText('GPU availability changed');
  await expect(events.getByRole('link', { name: 'Audit log' })).toHaveAttribute('href', '/admin/audit');
  for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [380, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await picture(page, `overview-attention-${scheme}-${width}`);
    await expectAccessible(page);
  }
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
  await list.getByRole('link', { name: 'rack-1' }).click();
  await expect(page).toHaveURL(new RegExp(`/admin/workers/${id}\\?show=gpus$`));
});

test('users without access to workers see only jobs', async ({ page, server }) => {
  await makeWorker(server, 'rack-1');
  await signInAs(page, server, 'rita', 'researcher');
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Running now' })).toBeVisible();
  await expect(page.getByText('Needs attention')).toHaveCount(0);
  await expect(page.getByText('Recent events')).toHaveCount(0);
  await expect(page.getByRole('region', { name: 'Recent jobs' })).toContainText('No jobs yet');
});

test('the first steps say that no worker has connected until one has; the longest wait links to its job', async ({ page, server }) => {
  test.setTimeout(60_000);
  const { token } = await makeWorker(server, 'rack-1');
  await signIn(page, server);
  await page.goto('/');
  await expect(page.getByText('No machine is connected yet.')).toBeVisible();
  await registerGpus(server, token, 1);
  await page.reload();
  await expect(page.getByText('runs training jobs on your GPU machines')).toBeVisible();
  await expect(page.getByText('No machine is connected yet.')).toHaveCount(0);
  // Adding a configuration is one of the steps; the state of the fleet is below, aligned to the left.
  const start = page.getByRole('region', { name: 'Get started' });
  await expect(start.getByRole('listitem')).toHaveCount(4);
  await expect(start.getByRole('link', { name: 'Add a configuration' })).toHaveAttribute('href', '/configs/new');
  const leftEdge = async (name: string) => (await page.getByRole('region', { name }).boundingBox())!.x;
  expect(await leftEdge('Fleet')).toBeCloseTo(await leftEdge('Get started'), 0);
  const job = await submit(server, 'digits');
  await page.reload();
  const wait = page.locator('.tiles').getByRole('link', { name: /^oldest/ });
  for (const width of [1280, 380]) {
    await page.setViewportSize({ width, height: 900 });
    await picture(page, `overview-wait-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    const overflow = await wait.evaluate((link) => {
      const text = link.cloneNode(true) as Element;
      text.textContent = 'oldest 20 min 18 s';
      link.after(text);
      const right = text.getBoundingClientRect().right - link.closest('li')!.getBoundingClientRect().right;
      text.remove();
      return right;
    });
    expect(overflow, 'the longest wait stays in its tile').toBeLessThanOrEqual(0);
  }
  await wait.click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${job}$`));
});

test('the overview shows an agent that was rejected after its token was rotated', async ({ page, context, server, agent, javaScriptEnabled }) => {
  test.setTimeout(60_000);
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  const program = agent({ token, name: 'gpu-1', args: ['--persistent'] });
  const status = async () => (await (await server.api(`/api/admin/workers/${id}`)).json()).status;
  await expect.poll(status, { timeout: 30_000 }).toBe('idle');
  await signIn(page, server);
  const worker = page.getByRole('region', { name: 'Fleet' }).getByRole('listitem').filter({ hasText: 'gpu-1' });
  await expect(worker).toContainText('Idle');
  if (javaScriptEnabled) await live(page);

  const rotation = await context.newPage();
  await rotation.goto(`/admin/workers/${id}`);
  const panel = rotation.getByRole('region', { name: 'Token', exact: true });
  await panel.locator('summary', { hasText: 'Rotate token' }).click();
  await expect(panel.getByLabel('Old token expires')).toHaveValue(''); // immediately
  await panel.getByRole('button', { name: 'Rotate token' }).click();
  await expect(rotation.getByLabel('Worker token', { exact: true })).toBeVisible();
  expect(await program.end(20_000)).toBe('exit status 77');

  // The page that was open before follows by itself.
  if (!javaScriptEnabled) await page.reload();
  const event = page.getByRole('region', { name: 'Recent events' }).getByRole('listitem').filter({ hasText: 'Agent registration rejected' });
  await expect(event).toContainText('gpu-1');
  await expect(page.getByRole('region', { name: 'Needs attention' })).toContainText('Agent registration rejected · its token is invalid');
  await expect(worker).toContainText('Offline');
  await expectAccessible(page);
  await picture(page, 'overview-rejected');
});

/** Returns the height of the largest part of a column that is empty while another column still has content. */
async function largestGap(page: Page): Promise<number> {
  return page.getByRole('main').evaluate((main) => {
    const boxes = [...main.querySelectorAll('section, .tiles')].map((part) => part.getBoundingClientRect());
    const [left, right] = [Math.min(...boxes.map((box) => box.left)), Math.max(...boxes.map((box) => box.right))];
    const end = Math.max(...boxes.map((box) => box.bottom));
    const gaps = [1, 3, 5, 7].map((eighth) => {
      const x = left + ((right - left) * eighth) / 8;
      const column = boxes.filter((box) => box.left <= x && x <= box.right).sort((a, b) => a.top - b.top);
      let [gap, bottom] = [0, column[0]?.top ?? 0];
      for (const box of column) [gap, bottom] = [Math.max(gap, box.top - bottom), Math.max(bottom, box.bottom)];
      return Math.max(gap, end - bottom);
    });
    return Math.max(...gaps);
  });
}

test('no column of a new fleet has a large gap', async ({ page, server }) => {
  await page.setViewportSize({ width: 1280, height: 900 });
  await signIn(page, server);
  const host = await Host.connect(server, 'rack-1');
  // Enough events for a full list.
  for (const action of Array.from({ length: 8 }, (_, n) => (n % 2 ? 'resume' : 'drain'))) {
    expect((await server.api(`/api/admin/workers/${host.id}/${action}`, { method: 'POST' })).status).toBe(200);
  }
  for (const state of ['first-worker', 'first-job']) {
    if (state === 'first-job') {
      await submit(server, 'digits');
      await host.run();
    }
    await page.goto('/');
    await expect(page.getByRole('region', { name: 'Fleet' })).toContainText('rack-1');
    await expect(page.getByRole('region', { name: 'Recent events' }).getByRole('listitem')).toHaveCount(10);
    await picture(page, `overview-${state}`);
    expect(await largestGap(page), state).toBeLessThan(300);
  }
  host.close();
});

test('the notes of the tiles are not cut off, in any language', async ({ page, server, context }) => {
  test.setTimeout(60_000);
  const host = await Host.connect(server, 'atlas', { gpus: 25 });
  const unavailable = { reason: 'quarantined', detail: 'XID 79' };
  await host.sendReadings(host.gpus.slice(23).map((uuid) => ({ uuid, unavailable })));
  const body = JSON.stringify({ config_name: 'digits', gpu_count: 23 });
  expect((await server.api('/api/queue/submit', { method: 'POST', body })).status).toBe(201);
  await host.run();
  await signIn(page, server);
  const notes = page.locator('.tiles .tile > .tile-note');
  await expect(notes.nth(1)).toHaveText('23 allocated · 2 unavailable');
  for (const language of ['en', 'es', 'hi', 'ja', 'pt', 'zh']) {
    await context.addCookies([{ name: 'language', value: language, url: server.url }]);
    for (const width of [1280, 380]) {
      await page.setViewportSize({ width, height: 900 });
      await page.reload();
      await expect(page.locator('html')).toHaveAttribute('lang', new RegExp(`^${language}`));
      const overflows = await notes.evaluateAll((all) => all.map((note) => {
        const text = document.createRange();
        text.selectNodeContents(note);
        return text.getBoundingClientRect().right - note.getBoundingClientRect().right;
      }));
      expect(Math.max(...overflows), `${language}, ${width} px`).toBeLessThanOrEqual(0.5);
      await picture(page, `overview-tiles-${language}-${width}`);
    }
  }
  host.close();
});
