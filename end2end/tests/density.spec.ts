// The height of table rows, however long their names are. With and without JavaScript.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host } from '../host';
import { signIn } from '../steps';

const LONG = 'mi300-frankfurt-rack-12-node-003.cluster.internal.example.com'; // 61 characters
const LABELS = { cluster: 'frankfurt-production', site: 'frankfurt-am-main', team: 'vision-language', tier: 'preemptible-spot-instances' };

async function submit(server: Server, more: object): Promise<string> {
  const body = JSON.stringify({ config_name: 'digits', ...more });
  const response = await server.api('/api/queue/submit', { method: 'POST', body });
  expect(response.status).toBe(201);
  return (await response.json()).job_id;
}

/** Submits fifty jobs, of which one failed and one runs on a worker with a long name. */
async function submitFifty(server: Server): Promise<Host> {
  const host = await Host.connect(server, LONG, { gpus: 2, labels: LABELS });
  await submit(server, { worker_labels: LABELS });
  await host.report(await host.run(), 'failed', { error: `RuntimeError: ${'CUDA out of memory. '.repeat(20)}` });
  await submit(server, { worker_labels: LABELS });
  await host.progress(await host.run(), [{ step: 40, total_steps: 6_000, at: new Date().toISOString(), loss: 0.0823, eta_seconds: 4_321 }]);
  for (let job = 2; job < 50; job += 1) await submit(server, { gpu_count: 16, min_vram_gb: 80, worker_labels: LABELS });
  return host;
}

const heights = (page: Page) => page.locator('main .is-fixed tbody tr').evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
/** Returns the texts in table rows that their own boxes cut above or below. */
const cutTexts = (page: Page) => page.locator('main .is-fixed tbody').evaluateAll((bodies) => bodies.flatMap((body) => {
  const found: string[] = [];
  const texts = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = document.createRange();
    text.selectNodeContents(texts.currentNode);
    const letters = text.getBoundingClientRect();
    for (let box = texts.currentNode.parentElement!; box !== body && letters.width > 1; box = box.parentElement!) {
      const edge = box.getBoundingClientRect();
      const cuts = getComputedStyle(box).overflowY !== 'visible' && (letters.top < edge.top - 0.1 || letters.bottom > edge.bottom + 0.1);
      if (cuts && edge.width > 1) found.push(`${box.className}: ${text}`); // a box of 1 px is for screen readers
    }
  }
  return found;
}));
const pageWidth = (page: Page) => page.locator('html').evaluate((html) => html.scrollWidth);

test('all rows have the same height, also with long names', async ({ page, server, context }) => {
  test.setTimeout(90_000);
  const host = await submitFifty(server);
  await signIn(page, server);
  await page.setViewportSize({ width: 1280, height: 900 });
  const tables = ['/jobs', '/', '/admin/workers', `/admin/workers/${host.id}/jobs`, `/admin/workers/${host.id}?show=gpus`];
  // Without scripts a time is shown in full, on two small lines.
  for (const [density, maxHeight] of [['comfortable', 40], ['compact', 33]] as const) {
    await context.addCookies([{ name: 'density', value: density, url: server.url }]);
    for (const path of tables) {
      await page.goto(path);
      const rows = await heights(page);
      expect(rows.length, path).toBeGreaterThan(0);
      expect(Math.max(...rows), `${density} ${path}`).toBeLessThanOrEqual(maxHeight);
      await picture(page, `density-${density}-${tables.indexOf(path)}`);
    }
  }
  await context.addCookies([{ name: 'density', value: 'comfortable', url: server.url }]);
  await page.goto('/jobs');
  expect(await heights(page)).toHaveLength(50);
  expect(await page.locator('main .is-fixed').evaluate((table) => table.scrollHeight)).toBeLessThanOrEqual(2_200);
  const name = await page.locator('main tbody th').first().evaluate((cell) => cell.getBoundingClientRect().width);
  expect(name, 'the names have enough width').toBeGreaterThan(180);
  // What a status says is cut after its remark, however long that is.
  const statuses = page.locator('table.jobs .cell-line > .status > span');
  expect(await statuses.count()).toBe(50);
  expect(await statuses.evaluateAll((found) => found.filter((text) => text.scrollWidth > text.clientWidth).length), 'no status is cut').toBe(0);
  await expect(page.getByRole('link', { name: LONG }).first()).toHaveAttribute('title', LONG);
  await page.goto('/jobs?phase=waiting');
  await expect(page.getByText('+2').first()).toHaveAttribute('title', /tier=preemptible-spot-instances/);
  await expectAccessible(page);
  expect(await pageWidth(page)).toBeLessThanOrEqual(1_280);

  await page.setViewportSize({ width: 380, height: 800 });
  const cards = await heights(page);
  expect(cards.reduce((sum, card) => sum + card, 0), 'fifty cards on a phone').toBeLessThanOrEqual(4_000);
  expect(await pageWidth(page)).toBeLessThanOrEqual(380);
  await picture(page, 'density-380');
  await expectAccessible(page);
  host.close();
});

test('no letter in the two lines of a row is cut off', async ({ page, server, context }) => {
  test.setTimeout(90_000);
  const host = await submitFifty(server);
  await signIn(page, server);
  for (const density of ['comfortable', 'compact']) {
    await context.addCookies([{ name: 'density', value: density, url: server.url }]);
    for (const path of ['/admin/workers', '/jobs', '/', `/admin/workers/${host.id}/jobs`, `/admin/workers/${host.id}?show=gpus`]) {
      await page.goto(path);
      await expect(page.locator('main .is-fixed tbody tr').first()).toBeVisible();
      expect.soft(await cutTexts(page), `${density} ${path}`).toEqual([]);
      expect(await pageWidth(page), path).toBeLessThanOrEqual(1_280);
      await picture(page, `letters-${density}-${path.replace(/\W+/g, '-').replace(host.id, 'id')}`);
    }
  }
  host.close();
});

test('fifty attempts of a worker take at most 2,200 px, also with long names', async ({ page, server }) => {
  test.setTimeout(90_000);
  const config = 'flux-lora-portraits-of-frankfurt-production-vision-language-01'; // 62 characters
  const { bundle } = await (await server.api('/api/configs/digits')).json();
  const put = await server.api(`/api/configs/${config}`, { method: 'PUT', body: JSON.stringify({ files: bundle.files }) });
  expect(put.ok, await put.text()).toBe(true);
  const host = await Host.connect(server, LONG, { gpus: 2, labels: LABELS });
  for (let number = 0; number < 50; number += 1) {
    await submit(server, { config_name: config, worker_labels: LABELS });
    const offer = await host.run();
    if (number % 3 === 0) await host.report(offer, 'failed', { error: `RuntimeError: ${'CUDA out of memory. '.repeat(20)}`, exit_code: 1 });
    else await host.report(offer, 'completed');
  }
  await signIn(page, server);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`/admin/workers/${host.id}`);
  await page.getByRole('navigation', { name: 'Worker views' }).getByRole('link', { name: 'Jobs' }).click();
  await expect(page).toHaveURL(`${server.url}/admin/workers/${host.id}/jobs`);
  await expect(page.locator('main .is-fixed tbody tr')).toHaveCount(50);
  const rows = await heights(page);
  expect(rows).toHaveLength(50);
  expect(Math.max(...rows)).toBeLessThanOrEqual(40);
  expect(await page.locator('main .is-fixed').evaluate((table) => table.scrollHeight)).toBeLessThanOrEqual(2_200);
  const name = page.locator('main tbody').getByRole('link', { name: config }).first();
  expect((await name.boundingBox())!.width, 'the names have enough width').toBeGreaterThan(180);
  await expect(name).toHaveAttribute('title', config);
  expect(await pageWidth(page)).toBeLessThanOrEqual(1_280);
  await picture(page, 'density-attempts');
  await expectAccessible(page);
  host.close();
});
