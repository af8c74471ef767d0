// What only the hydrated page does.
import { expect, test } from '../fixtures';
import { live, makeWorker, registerGpus, signIn, submit, tellGpus } from '../steps';

test('lists follow the fleet without a reload', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  await makeWorker(server, 'came-later');
  await expect(page.getByRole('link', { name: 'came-later' })).toBeVisible();
  await page.goto('/jobs');
  await live(page);
  await submit(server, 'digits');
  await expect(page.getByRole('row').filter({ hasText: 'digits' })).toContainText('Queued');
});

test('readings of GPUs follow without a reload', async ({ page, server }) => {
  const { worker_id: id, token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 1);
  await tellGpus(server, token, [{ uuid: 'GPU-0', temperature_celsius: 40 }]);
  await signIn(page, server);
  await page.goto(`/admin/workers/${id}`);
  await live(page);
  await expect(page.getByRole('cell', { name: /^40\s°C$/ })).toBeVisible();
  await tellGpus(server, token, [{ uuid: 'GPU-0', temperature_celsius: 71 }]);
  await expect(page.getByRole('cell', { name: /^71\s°C$/ })).toBeVisible();
  await tellGpus(server, token, [{ uuid: 'GPU-0', withheld: { reason: 'quarantined', detail: 'XID 79' } }]);
  await expect(page.getByText('Quarantined')).toBeVisible();
});

test('a page survives a restart of the server and is live again', async ({ page, server, complaints }) => {
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  await server.restart();
  await makeWorker(server, 'after-the-restart');
  await expect(page.getByRole('link', { name: 'after-the-restart' })).toBeVisible({ timeout: 20_000 });
  // While the server is away the browser reports refused connections.
  complaints.splice(0, complaints.length, ...complaints.filter((line) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(line)));
});

test('ages are told in words and exactly', async ({ page, server }) => {
  await makeWorker(server, 'gpu-1');
  await submit(server, 'digits');
  await signIn(page, server);
  await page.goto('/jobs');
  const age = page.locator('time').first();
  await expect(age).toHaveText(/ago|now/);
  await expect(age).toHaveAttribute('datetime', /^\d{4}-\d\d-\d\dT/);
});
