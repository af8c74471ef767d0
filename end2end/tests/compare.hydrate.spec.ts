// Comparing jobs with scripts: hiding lines, reading values in charts and parallel coordinates, selecting too few jobs, and following a running job.
import { expect, expectAccessible, picture, test, type Server } from '../fixtures';
import { Host, type Offer } from '../host';
import { live, signIn, submit } from '../steps';

async function start(server: Server, host: Host, name: string, overrides: object = {}): Promise<Offer> {
  const body = JSON.stringify({ config_name: 'digits', target: 'worker', name, overrides });
  expect((await server.api('/api/queue/submit', { method: 'POST', body })).status).toBe(201);
  return host.run();
}

const points = (count: number, scale = 1) =>
  Array.from({ length: count }, (_, step) => ({ step, at: new Date(Date.now() + step * 1_000).toISOString(), loss: scale / (step + 1) }));

test('lines are hidden and shown by pointer and keyboard, and the page follows a running job', async ({ page, server }) => {
  test.setTimeout(90_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 2 });
  const done = await start(server, host, 'done');
  await host.progress(done, points(20));
  await host.report(done, 'completed');
  const running = await start(server, host, 'running');
  await host.progress(running, points(10, 5));
  await signIn(page, server);
  await page.goto(`/jobs/compare?id=${done.job_id}&id=${running.job_id}&smooth=0`);
  await live(page);
  const loss = page.getByRole('figure').filter({ hasText: 'Loss' });
  const lines = loss.locator('svg.chart:visible path.curve');
  await expect(lines).toHaveCount(2);
  const toggle = page.getByRole('button', { name: 'running', exact: true });
  await expect(toggle).toHaveAttribute('aria-pressed', 'true');
  await toggle.click();
  await expect(toggle).toHaveAttribute('aria-pressed', 'false');
  await expect(lines.nth(1)).toHaveAttribute('d', '');
  await expect(lines.nth(0), 'the other line keeps its color').toHaveClass('curve series-1');
  await toggle.focus();
  await page.keyboard.press('Space');
  await expect(toggle).toHaveAttribute('aria-pressed', 'true');
  await expect(lines.nth(1)).toHaveAttribute('d', /^M/);

  // A cursor reads all lines at the same step.
  await loss.locator('svg.chart:visible').focus();
  await page.keyboard.press('Home');
  await expect(loss.locator('.chart-legend .chart-value')).toHaveText(['1.00', '5.00']);
  await page.keyboard.press('Escape');

  // New points of the running job are drawn.
  await host.progress(running, points(30, 5).slice(10));
  const final = page.getByRole('table', { name: 'Final metrics' }).getByRole('row', { name: /^Step \d/ });
  await expect(final.getByRole('cell')).toHaveText(['19', '29'], { timeout: 15_000 });
  await host.report(running, 'completed');
  await expect(page.locator('.compared-jobs > li').nth(1)).toContainText('Completed', { timeout: 15_000 });
  host.close();
});

test('twenty lines of 500 points are drawn and read quickly', async ({ page, server }) => {
  test.setTimeout(120_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const ids: string[] = [];
  for (let number = 1; number <= 20; number += 1) {
    const offer = await start(server, host, `run ${number}`);
    await host.progress(offer, points(500, number));
    await host.report(offer, 'completed');
    ids.push(offer.job_id);
  }
  await signIn(page, server);
  await page.goto(`/jobs/compare?ids=${ids}`);
  await live(page);
  // Another scale draws every line again.
  const redraw = await page.evaluate(async () => {
    const link = [...document.querySelectorAll<HTMLAnchorElement>('.switch-link')].find((link) => link.textContent === 'Log')!;
    const line = document.querySelector('.chart path.curve.series-20[d^=M]')!;
    const before = line.getAttribute('d');
    const started = performance.now();
    link.click();
    while (line.getAttribute('d') === before) await new Promise((resolve) => setTimeout(resolve));
    return performance.now() - started;
  });
  const hover = await page.evaluate(async () => {
    const chart = [...document.querySelectorAll<SVGElement>('svg.chart')].find((chart) => chart.getBoundingClientRect().width > 0)!;
    const { left, top, width, height } = chart.getBoundingClientRect();
    const started = performance.now();
    for (let move = 1; move <= 20; move += 1) {
      chart.dispatchEvent(new PointerEvent('pointermove', { clientX: left + (width * move) / 21, clientY: top + height / 2, bubbles: true }));
      await new Promise((resolve) => setTimeout(resolve));
    }
    return (performance.now() - started) / 20;
  });
  console.log(`20 lines of 500 points: drawn in ${redraw.toFixed(0)} ms, read in ${hover.toFixed(0)} ms`);
  // While the x axis is moved, frames are counted.
  await page.goto(`/jobs/compare?ids=${ids}&zoom=100~300`);
  await live(page);
  const frames = await page.evaluate(async () => {
    const chart = [...document.querySelectorAll<SVGElement>('svg.chart')].find((chart) => chart.getBoundingClientRect().width > 0)!;
    chart.setPointerCapture = () => {}; // the pointer of this test does not exist
    const { left, top, width, height } = chart.getBoundingClientRect();
    const send = (type: string, at: number) =>
      chart.dispatchEvent(new PointerEvent(type, { clientX: left + width * at, clientY: top + height / 2, shiftKey: true, pointerType: 'mouse', bubbles: true }));
    send('pointerdown', 0.5);
    const started = performance.now();
    const count = 100;
    for (let frame = 1; frame <= count; frame += 1) {
      send('pointermove', 0.5 - 0.2 * Math.sin(frame / 10));
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    const perSecond = (count * 1_000) / (performance.now() - started);
    send('pointerup', 0.4);
    return perSecond;
  });
  console.log(`20 lines of 500 points: moved at ${frames.toFixed(0)} frames per second`);
  await expect(page).not.toHaveURL(/zoom=100~300/);
  await expect(page.locator('.chart-legend .chart-value').first()).not.toHaveText('–');
  expect(redraw).toBeLessThan(1_000);
  expect(hover).toBeLessThan(200);
  host.close();
});

test('a line of the parallel coordinates is read by pointer and keyboard', async ({ page, server }) => {
  test.setTimeout(90_000);
  const host = await Host.connect(server, 'gpu-1', { gpus: 1 });
  const ids: string[] = [];
  for (const [index, optimizer] of ['lion', 'adamw', undefined].entries()) {
    const offer = await start(server, host, `run ${index}`, { learning_rate: 10 ** (index - 4), optimizer });
    await host.progress(offer, points(2, index + 1));
    await host.report(offer, 'completed');
    ids.push(offer.job_id);
  }
  await signIn(page, server);
  await page.goto(`/jobs/compare?ids=${ids}`);
  await live(page);
  const panel = page.getByRole('region', { name: 'Parallel coordinates' });
  const plot = panel.getByRole('img', { name: /^Parallel coordinates/ });
  const lines = plot.locator('.parallel-line');
  const [readout, values] = [panel.locator('.parallel-readout'), plot.locator('.parallel-value')];
  await expect(readout).toContainText('Point at a line');

  // The pointer, near the line between two axes.
  await plot.scrollIntoViewIfNeeded();
  const at = await lines.nth(1).locator('.curve').evaluate((element) => {
    const path = element as SVGPathElement;
    const point = path.getPointAtLength(path.getTotalLength() * 0.2).matrixTransform(path.getScreenCTM()!);
    return { x: point.x, y: point.y + 3 };
  });
  await page.mouse.move(at.x, at.y);
  await expect(readout).toHaveText('run 1: learning_rate 0.001, optimizer adamw, Loss 1.00');
  await expect(values).toHaveText(['0.001', 'adamw', '1.00']);
  await expect(lines.nth(1)).toHaveCSS('opacity', '1');
  for (const other of [0, 2]) await expect(lines.nth(other)).toHaveCSS('opacity', '0.15');
  await picture(page, 'compare-parallel-read');
  await page.mouse.move(0, 0);
  await expect(values).toHaveCount(0);
  await expect(lines.nth(0)).toHaveCSS('opacity', '1');
  await panel.getByRole('listitem').nth(2).hover();
  await expect(values).toHaveText(['0.01', '–', '1.50']);
  await page.mouse.move(0, 0);

  // Keys lead from job to job.
  await plot.focus();
  await expect(readout).toHaveText(/^run 0: /);
  await page.keyboard.press('ArrowDown');
  await expect(readout).toHaveText(/^run 1: /);
  await page.keyboard.press('End');
  await expect(values).toHaveText(['0.01', '–', '1.50']);
  await page.keyboard.press('ArrowUp');
  await expect(values).toHaveText(['0.001', 'adamw', '1.00']);
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await expect(values).toHaveCount(0);
  await page.keyboard.press('Home');
  await expect(readout).toHaveText(/^run 0: /);
  await plot.blur();
  await expect(readout).toContainText('Point at a line');
  host.close();
});

test('one selected job cannot be compared', async ({ page, server }) => {
  for (let number = 0; number < 2; number += 1) await submit(server, 'digits');
  await signIn(page, server);
  await page.goto('/jobs');
  await live(page);
  const compare = page.locator('.pick-offers').getByRole('button', { name: 'Compare' });
  const boxes = page.locator('tbody .pick');
  await boxes.nth(0).check();
  await expect(compare).toBeDisabled();
  await boxes.nth(1).check();
  await expect(compare).toBeEnabled();
});
