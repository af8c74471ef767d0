// The audit log: filters in the address, paging, and verification.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { makeWorker, signIn, signInAs } from '../steps';

test('the audit log is filtered and paged, and links to the targets of its entries', async ({ page, server }) => {
  test.setTimeout(120_000); // creating this many workers takes time
  for (let n = 0; n < 55; n++) await makeWorker(server, `gpu-${n}`);
  await makeWorker(server, '<b>bold</b>');
  await signIn(page, server);
  await page.getByRole('link', { name: 'Audit log' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Audit log');
  const rows = page.getByRole('table').locator('tbody tr');
  await expect(rows).toHaveCount(50);
  await expect(rows.first()).toContainText('Signed in');
  await expect(rows.nth(1)).toContainText('Worker created');
  await rows.nth(1).locator('summary').click();
  await expect(rows.nth(1).locator('pre')).toContainText('"name": "<b>bold</b>"');
  await expect(rows.nth(1).getByRole('link', { name: '<b>bold</b>' })).toHaveAttribute('title', /^w_/);
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow, 'wider than its window').toBeLessThanOrEqual(0);
    await expect(rows.nth(1).locator('pre')).toBeVisible();
    await expect(rows.nth(1).getByRole('link', { name: /^Request ID/ })).toBeVisible();
    await picture(page, `audit-${scheme}-${width}`);
    await expectAccessible(page);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('link', { name: 'Older' }).click();
  await expect(page).toHaveURL(/cursor=/);
  await expect(rows.filter({ hasText: 'Admin token created from the environment' })).toHaveCount(1);
  await page.getByRole('link', { name: 'Newest' }).click();
  await page.getByLabel('Action', { exact: true }).selectOption('worker.created');
  await page.getByLabel('Actor').fill('admin');
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(page).toHaveURL(/actor=admin&action=worker.created/);
  await expect(page.getByLabel('Actor')).toHaveValue('admin');
  await expect(rows.first()).toContainText('worker.created');
  const lines = await page.request.get((await page.getByRole('link', { name: 'Export JSONL' }).getAttribute('href'))!);
  expect((await lines.text()).trim().split('\n')).toHaveLength(56);
  await rows.nth(1).getByRole('link', { name: 'gpu-54' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('gpu-54');
  await page.goto('/admin/audit?target=nothing');
  await expect(page.getByText('No matching entries')).toBeVisible();
  await page.getByRole('link', { name: 'Clear filters' }).last().click();
  await expect(rows).toHaveCount(50);
});

test('the chain is verified; users without permission get no audit log', async ({ page, server, consoleErrors }) => {
  await signIn(page, server);
  await page.goto('/admin/audit');
  await page.getByRole('link', { name: 'Verify integrity' }).click();
  await expect(page.getByText('Audit log intact')).toBeVisible();
  await expect(page.getByText('1 chain')).toBeVisible();
  await picture(page, 'audit-verify-1280');
  await expectAccessible(page);
  await page.context().clearCookies();
  await signInAs(page, server, 'lea', 'lead');
  await expect(page.getByRole('link', { name: 'Audit log' })).toHaveCount(0);
  await page.goto('/admin/audit');
  await expect(page.getByText('admin.audit')).toBeVisible();
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/status of 403/.test(line)));
});
