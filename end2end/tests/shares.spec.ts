// Teams are created, changed and deleted on pages; a job of another team waits for its turn, and says why.
import { expect, test } from '../fixtures';
import { Host } from '../host';
import { makeWorker, registerGpus, signIn, signInAs, submit } from '../steps';

test('an admin creates a team, adds a member with a limit, and deletes it', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/shares');
  await page.getByRole('link', { name: 'New team' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Vision');
  await page.getByLabel('Weight').fill('3');
  await page.getByLabel('Guaranteed GPUs').fill('8');
  await page.getByRole('button', { name: 'New team' }).click();
  // The name is rejected beside its field, and what was typed is kept.
  await expect(page.getByLabel('Name', { exact: true })).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('Weight')).toHaveValue('3');
  await page.getByLabel('Name', { exact: true }).fill('vision');
  await page.getByRole('button', { name: 'New team' }).click();
  await expect(page).toHaveURL(/\/shares\/vision$/);
  await expect(page.locator('#content').getByText('Team saved.').first()).toBeVisible();
  await expect(page.getByLabel('Guaranteed GPUs')).toHaveValue('8');

  await page.getByLabel('User', { exact: true }).fill('unknown');
  await page.getByRole('button', { name: 'Add member' }).click();
  await expect(page.getByLabel('User', { exact: true })).toHaveAttribute('aria-invalid', 'true');
  await page.getByLabel('User', { exact: true }).fill('admin');
  await page.getByRole('button', { name: 'Add member' }).click();
  await page.getByRole('link', { name: 'Change limits: admin' }).click();
  await page.getByLabel('Maximum GPUs').fill('4');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Maximum GPUs: 4')).toBeVisible();

  await page.goto('/shares');
  const row = page.getByRole('row', { name: /vision/ });
  await expect(row).toContainText('Guaranteed: 8');
  await row.getByRole('link', { name: 'vision' }).click();
  await page.locator('summary', { hasText: 'Delete team' }).click();
  await page.getByRole('button', { name: 'Delete team' }).click();
  await expect(page).toHaveURL(/\/shares$/);
  await expect(page.getByRole('row', { name: /vision/ })).toHaveCount(0);
});

test('a job says that the limit of its team is reached, and who uses what is visible to all', async ({ page, server }) => {
  const team = await server.api('/api/teams', { method: 'POST', body: JSON.stringify({ name: 'vision', settings: { max_running_jobs: 0 } }) });
  expect(team.status).toBe(201);
  expect((await server.api('/api/teams/vision/members/admin', { method: 'PUT', body: '{}' })).status).toBe(200);
  const { token } = await makeWorker(server, 'gpu-1');
  await registerGpus(server, token, 1);
  const job = await submit(server, 'digits');
  await signInAs(page, server, 'victor', 'viewer');
  await page.goto(`/jobs/${job}`);
  await expect(page.getByText('Team vision has reached its limit of running jobs (0).').first()).toBeVisible();
  await page.goto('/shares');
  await expect(page.getByRole('row', { name: /^vision/ })).toBeVisible();
  await expect(page.getByRole('link', { name: 'New team' })).toHaveCount(0);
});

test('an idle job makes room for another one, and both pages say so', async ({ page, server }) => {
  const host = await Host.connect(server, 'atlas', { gpus: 1 });
  const idle = await submit(server, 'digits', { class: 'idle' });
  await host.run();
  const normal = await submit(server, 'digits-quick');
  await signIn(page, server);
  await expect(async () => {
    await page.goto(`/jobs/${normal}`);
    await expect(page.getByText('Jobs on atlas are being stopped so that this one can start').first()).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await page.goto(`/jobs/${idle}/events`);
  await expect(page.getByText(`makes room for job ${normal}`)).toBeVisible();
  host.close();
});
