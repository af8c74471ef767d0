// Row selection with scripts: the count, selecting all rows, keyboard use, and a selection
// that survives updates of the list.
import { expect, test } from '../fixtures';
import { live, makeWorker, signIn } from '../steps';

test('selected rows are counted, can all be selected at once, and stay selected while the list changes', async ({ page, server }) => {
  const workers = [];
  for (const name of ['ada', 'bob', 'cid']) workers.push(await makeWorker(server, name));
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  const rows = page.locator('tbody .pick');
  const all = page.getByRole('checkbox', { name: 'Select all on this page' });
  const selectionStatus = page.getByRole('main').getByRole('status').filter({ hasText: 'selected' });
  await rows.nth(1).check();
  await expect(selectionStatus).toHaveText('1 selected');
  await expect(all).toHaveJSProperty('indeterminate', true);
  await all.check();
  await expect(selectionStatus).toHaveText('3 selected');
  await rows.nth(0).uncheck();
  await expect(selectionStatus).toHaveText('2 selected');

  // After one worker has changed, one appeared and one disappeared, each selection is still in its row.
  await page.getByRole('heading', { level: 1 }).click();
  await server.api(`/api/admin/workers/${workers[1]!.worker_id}/drain`, { method: 'POST' });
  await expect(page.getByRole('row').filter({ hasText: 'bob' })).toContainText('Draining');
  await makeWorker(server, 'aaa');
  await expect(page.getByRole('row').filter({ hasText: 'aaa' })).toBeVisible();
  await expect(page.locator('tbody tr').filter({ has: page.locator('.pick:checked') })).toContainText(['bob', 'cid']);
  await server.api(`/api/admin/workers/${workers[2]!.worker_id}`, { method: 'DELETE' });
  await expect(page.locator('tbody tr')).toHaveCount(3);
  await expect(selectionStatus).toHaveText('1 selected');

  await page.getByRole('button', { name: 'Clear' }).click();
  await expect(page.locator('.pick:checked')).toHaveCount(0);
  await expect(page.locator('.pick-offers')).toBeHidden();
  await expect(all, 'the button is removed, and the focus moves to the next control').toBeFocused();
});

test('x selects the focused row, and d focuses the bulk actions', async ({ page, server }) => {
  for (const name of ['ada', 'bob']) await makeWorker(server, name);
  await signIn(page, server);
  await page.goto('/admin/workers');
  await live(page);
  for (const key of ['j', 'j', 'x']) await page.keyboard.press(key);
  await expect(page.locator('tbody tr').filter({ has: page.locator('.pick:checked') })).toContainText(['bob']);
  await page.keyboard.press('k');
  await page.keyboard.press('x');
  await expect(page.getByText('2 selected')).toBeVisible();
  await page.keyboard.press('x');
  await expect(page.getByText('1 selected')).toBeVisible();
  await page.keyboard.press('d');
  await expect(page.getByRole('button', { name: 'Drain' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Drain 1 worker');
  await expect(page.getByRole('main')).toContainText('bob');
});
