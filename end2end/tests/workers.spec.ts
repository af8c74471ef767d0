// The list of workers: paging, sorting, search and filters.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { makeWorker, registerGpus, signIn } from '../steps';

test('a long list is paged and sorted, and shows the position', async ({ page, server }) => {
  for (let n = 0; n < 130; n += 10) await Promise.all(Array.from({ length: 10 }, (_, k) => makeWorker(server, `w${String(n + k).padStart(3, '0')}`)));
  await signIn(page, server);
  await page.goto('/admin/workers');
  const rows = page.locator('tbody tr');
  await expect(rows).toHaveCount(50);
  await expect(page.getByText('1–50 of 130')).toBeVisible();
  await page.getByRole('link', { name: 'Next' }).click();
  await expect(rows).toHaveCount(50);
  await expect(page.getByText('51–100 of 130')).toBeVisible();
  await page.getByRole('link', { name: 'Previous' }).click();
  await expect(rows.first()).toContainText('w000');
  await expect(page.getByRole('columnheader', { name: 'Worker' })).toHaveAttribute('aria-sort', 'ascending');
  await page.getByRole('columnheader', { name: 'Worker' }).getByRole('link').click();
  await expect(page).toHaveURL(/sort=-name/);
  await expect(rows.first()).toContainText('w129');
  await expect(page.getByRole('columnheader', { name: 'Worker' })).toHaveAttribute('aria-sort', 'descending');
});

test('the list has a search field, and filters with counts', async ({ page, server }) => {
  for (const [name, team] of [['ada', 'nlp'], ['bob', 'vision'], ['cid', 'vision']]) {
    const { worker_id: id, token } = await makeWorker(server, name!);
    await registerGpus(server, token, 2);
    await server.api(`/api/admin/workers/${id}`, { method: 'PATCH', body: JSON.stringify({ labels: { team } }) });
  }
  await makeWorker(server, 'dan');
  await signIn(page, server);
  await page.goto('/admin/workers');
  await expect(page.getByRole('navigation', { name: 'Status' }).getByRole('link', { name: /^Never connected\s*1$/ })).toBeVisible();
  await page.locator('summary', { hasText: 'Filters' }).click();
  await expectAccessible(page);
  await picture(page, 'workers-narrowing');
  await page.getByRole('navigation', { name: 'Labels' }).getByRole('link', { name: /^team=vision\s*2$/ }).click();
  await expect(page.locator('tbody tr')).toHaveCount(2);
  await expect(page.locator('#q')).toHaveValue('label.team=vision');
  await page.locator('#q').fill('gpu:a100* -label.team=vision');
  await page.locator('#q').press('Enter');
  await expect(page.locator('tbody tr')).toHaveCount(1);
  await expect(page.locator('tbody')).toContainText('ada');
  await page.locator('#q').fill('colour:red');
  await page.locator('#q').press('Enter');
  await expect(page.getByRole('main').getByRole('alert')).toContainText('colour:red');
  await expect(page.locator('#q')).toHaveValue('colour:red');
  await page.goto('/admin/workers?q=ada');
  const csv = await page.request.get((await page.getByRole('link', { name: 'CSV' }).getAttribute('href'))!);
  expect((await csv.text()).trim().split('\r\n')).toHaveLength(2);
});
