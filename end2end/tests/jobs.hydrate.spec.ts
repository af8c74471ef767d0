// The list of jobs in the browser: what needs scripts.
import { expect, test } from '../fixtures';
import { live, signIn } from '../steps';

test('a search is completed while it is typed', async ({ page, server }) => {
  const submitted = await server.api('/api/queue/submit', { method: 'POST', body: JSON.stringify({ config_name: 'digits', tags: ['ablation'] }) });
  expect(submitted.status).toBe(201);
  await signIn(page, server);
  await page.goto('/jobs');
  await live(page);
  const search = page.locator('#content').getByRole('combobox', { name: 'Search' });
  await search.pressSequentially('digits tag:ab');
  const completions = page.locator('#completions option');
  await expect(completions).toHaveCount(1);
  await expect(completions).toHaveAttribute('value', 'digits tag:ablation');
  await search.fill('config.');
  await expect(page.locator('#completions option[value^="config."]').first()).toBeAttached();
});
