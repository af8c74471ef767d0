// Charts that are zoomed, moved, smoothed and saved with pointer and keyboard.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { startJob } from '../host';
import { live, signIn } from '../steps';
import { readFile } from 'node:fs/promises';
import type { Locator, Page } from '@playwright/test';

const points = (steps: number): object[] =>
  Array.from({ length: steps }, (_, step) => ({ step, at: new Date(Date.now() + step * 1_000).toISOString(), loss: 1 + Math.sin(step / 9), metrics: { 'val/a': step } }));

const figure = (page: Page, title: string) => page.getByRole('figure').filter({ has: page.locator('.chart-title', { hasText: new RegExp(`^${title}$`) }) });
const zoom = (page: Page) => new URL(page.url()).searchParams.get('zoom')?.split('~').map(Number);

/** Drags over a chart, between two fractions of its width. */
async function drag(page: Page, chart: Locator, from: number, to: number): Promise<void> {
  const { x, y, width, height } = (await chart.boundingBox())!;
  await page.mouse.move(x + width * from, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * (from + to) / 2, y + height / 2);
  await page.mouse.move(x + width * to, y + height / 2);
}

test('charts are zoomed and moved together by pointer and keyboard', async ({ page, server }) => {
  test.setTimeout(90_000);
  await signIn(page, server);
  const { host, offer } = await startJob(server);
  await host.longProgress(offer, points(2_000));
  await page.goto(`/jobs/${offer.job_id}?show=charts`);
  await live(page);
  const entries = await page.evaluate(() => history.length);
  const chart = figure(page, 'Loss').locator('svg.chart:visible');
  await drag(page, chart, 0.3, 0.6);
  await expect(figure(page, 'val/a').locator('.chart-selection'), 'all charts show it').toBeVisible();
  await picture(page, 'charts-selecting');
  await page.mouse.up();
  await expect.poll(() => zoom(page)?.length).toBe(2);
  const [low, high] = zoom(page)!;
  expect(low).toBeGreaterThan(400);
  expect(high).toBeLessThan(1_400);
  // Both charts show the part, and more points of it arrive.
  const curve = figure(page, 'val/a').locator('path.curve').first();
  await expect.poll(async () => (await curve.getAttribute('d'))!.split('L').length).toBeGreaterThan(high! - low!);

  // Shift and drag moves all charts: not by drawing the lines again.
  const before = await curve.getAttribute('d');
  await page.keyboard.down('Shift');
  await drag(page, chart, 0.5, 0.4);
  await expect(figure(page, 'val/a').locator('svg.chart > svg')).not.toHaveAttribute('viewBox', /^43\.00 /);
  expect(await curve.getAttribute('d')).toBe(before);
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await expect.poll(() => zoom(page)![0]).toBeGreaterThan(low!);
  const moved = zoom(page)!;
  expect(moved[1]! - moved[0]!).toBeCloseTo(high! - low!, 1);

  // A click keeps the cursor, for whom the address is sent to.
  await chart.click();
  await expect(page).toHaveURL(/at=\d+/);
  const at = new URL(page.url()).searchParams.get('at')!;
  await page.mouse.move(0, 0);
  await page.getByRole('heading', { level: 2, name: 'Metrics' }).click();
  await expect(figure(page, 'val/a').locator('.chart-at')).toHaveText(`Step ${Number(at).toLocaleString('en')}`);
  await chart.dblclick();
  await expect.poll(() => zoom(page)).toBeUndefined();

  await chart.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('+');
  await expect.poll(() => zoom(page)).toEqual([0, 999.5]);
  await page.keyboard.press('Shift+ArrowRight');
  await expect.poll(() => zoom(page)).toEqual([249.875, 1249.375]);
  await page.keyboard.press('-');
  await expect.poll(() => zoom(page)).toBeUndefined();
  await page.keyboard.press('+');
  await page.keyboard.press('0');
  await expect.poll(() => zoom(page)).toBeUndefined();
  await expect(chart, 'an update keeps the focus').toBeFocused();
  expect(await page.evaluate(() => history.length), 'the address is replaced').toBe(entries);

  // A view survives a reload.
  await page.keyboard.press('+');
  await expect(page).toHaveURL(/zoom=/);
  const shown = zoom(page);
  await page.reload();
  await live(page);
  expect(zoom(page)).toEqual(shown);
  await expect(page.locator('.chart-zoom')).toBeVisible();
  host.close();
});

test('smoothing follows the slider', async ({ page, server }) => {
  await signIn(page, server);
  const { host, offer } = await startJob(server);
  await host.progress(offer, points(200));
  await page.goto(`/jobs/${offer.job_id}?show=charts`);
  await live(page);
  const slider = page.getByRole('slider', { name: 'Smoothing' });
  const curve = figure(page, 'Loss').locator('svg.chart:visible path.curve').last();
  const before = await curve.getAttribute('d');
  await slider.focus();
  await page.keyboard.press('Home');
  await expect(slider).toHaveAttribute('aria-valuetext', 'off');
  await expect(page).toHaveURL(/smooth=0$/);
  await expect(curve).not.toHaveAttribute('d', before!);
  await page.keyboard.press('ArrowRight');
  await expect(slider).toHaveAttribute('aria-valuetext', '0.01');
  await expect(figure(page, 'Loss').locator('svg.chart:visible .curve-behind'), 'the raw values are behind').toHaveCount(1);
  host.close();
});

test('a chart fills the screen, and is saved as a picture', async ({ page, server }) => {
  test.setTimeout(60_000);
  await signIn(page, server);
  const { host, offer } = await startJob(server);
  await host.progress(offer, points(200));
  await page.goto(`/jobs/${offer.job_id}?show=charts`);
  await live(page);
  const menu = figure(page, 'val/a').locator('.row-menu');
  await menu.locator('summary').click();
  await menu.getByRole('button', { name: 'Full screen' }).click();
  const dialog = page.getByRole('dialog', { name: 'val/a' });
  await expect(dialog.locator('svg.chart:visible')).toBeVisible();
  await expectAccessible(page);
  await picture(page, 'charts-full-screen');
  await page.keyboard.press('Escape');
  await expect(dialog).toBeHidden();

  const save = async (name: string) => {
    if (!(await menu.evaluate((details: HTMLDetailsElement) => details.open))) await menu.locator('summary').click();
    const download = page.waitForEvent('download');
    await menu.getByRole('button', { name }).click();
    return readFile(await (await download).path());
  };
  const svg = (await save('Picture (SVG)')).toString();
  expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  expect(svg).toContain('>val/a</text>');
  expect(svg).not.toMatch(/oklch|var\(/);
  const errors = await page.evaluate((text) => new DOMParser().parseFromString(text, 'image/svg+xml').querySelectorAll('parsererror').length, svg);
  expect(errors, 'it is well-formed').toBe(0);
  const png = await save('Picture (PNG)');
  expect([...png.subarray(1, 4)]).toEqual([...Buffer.from('PNG')]);
  expect(png.readUInt32BE(16), 'twice as wide').toBe(600);
  host.close();
});
