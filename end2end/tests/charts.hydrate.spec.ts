// Charts of a hydrated page, read by pointer and keyboard.
import { expect, test } from '../fixtures';
import { live, makeWorker, registerGpus, signIn, reportReadings } from '../steps';

test.use({ timezoneId: 'Asia/Kolkata' });

test('pointer and arrow keys read all charts of a group at the same position', async ({ page, server }) => {
  await signIn(page, server);
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 1);
  const sendReading = async (use: number, power: number) => reportReadings(server, token, [{ uuid: 'GPU-0', utilization_percent: use, power_watts: power }]);
  await sendReading(40, 100);
  await page.goto(`/admin/workers/${id}?show=gpus`);
  await live(page);
  const utilizationChart = page.getByRole('img', { name: /^Utilization/ }).first();
  const box = (title: string) => page.getByRole('figure').filter({ hasText: title });
  await expect(box('Utilization').locator('.chart-value')).toHaveText('40%');
  await utilizationChart.hover();
  await expect(box('Power').locator('.chart-at')).toHaveText(/^\d\d:\d\d UTC\+05:30$/);
  await page.mouse.move(0, 0);
  // Without a cursor the label shows the time zone of the axis.
  await expect(box('Power').locator('.chart-at')).toHaveText('UTC+05:30');
  await utilizationChart.focus();
  await page.keyboard.press('Home');
  await expect(box('Power').locator('.chart-value')).toHaveText('100\u{a0}W');
  await expect(box('Utilization').locator('[aria-live]')).toHaveText(/^\d\d:\d\d UTC\+05:30: 40%$/);
  await expect(box('Power').locator('[aria-live]')).toHaveText('');
  // An update redraws the chart and preserves the focus.
  await sendReading(80, 300);
  await expect(utilizationChart).toHaveAccessibleName(/highest/);
  await expect(utilizationChart).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(box('Power').locator('.chart-at')).toHaveText('UTC+05:30');
  // Times are in the user's zone, half an hour off the server's.
  const minutes = await page.evaluate(() => new Date().getTimezoneOffset());
  expect(minutes).toBe(-330);
  const now = new Date(Date.now() + 330 * 60_000).toISOString().slice(11, 13);
  await utilizationChart.focus();
  await page.keyboard.press('End');
  const at = (await box('Power').locator('.chart-at').textContent()) ?? '';
  expect(Math.abs(Number(at.slice(0, 2)) - Number(now)) % 23).toBeLessThanOrEqual(1);
});
