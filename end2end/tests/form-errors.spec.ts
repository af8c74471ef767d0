// A rejected form shows all errors together, each at its field: with and without JavaScript.
import type { Locator, Page } from '@playwright/test';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn } from '../steps';

/** Expects that the control is marked as invalid and described by the error. */
async function expectInvalid(page: Page, control: Locator, text: string): Promise<void> {
  await expect(control).toHaveAttribute('aria-invalid', 'true');
  await expect(control).toHaveAccessibleDescription(new RegExp(text));
  const error = page.locator('main .field-error').filter({ hasText: text });
  await expect(error).toBeVisible();
  expect((await control.getAttribute('aria-describedby'))!.split(' ')).toContain(await error.getAttribute('id'));
}

test('the worker form shows each error at its field', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name').fill('gpu-1');
  await page.getByLabel('Label 1').fill('team=nlp');
  await page.getByLabel('Label 2').fill('nonsense');
  await page.locator('summary', { hasText: 'Token restrictions' }).click();
  await page.getByLabel('Allowed networks').fill('10.0.0.0/33');
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.locator('main .field-error')).toHaveCount(2);
  await expectInvalid(page, page.getByLabel('Label 2'), 'nonsense');
  await expectInvalid(page, page.getByLabel('Allowed networks'), '10.0.0.0/33');
  await expect(page.getByLabel('Label 1')).not.toHaveAttribute('aria-invalid');
  await expect(page.getByLabel('Label 2'), 'the first invalid field has the focus').toBeFocused();
  await expect(page.getByLabel('Label 2'), 'the typed text stays').toHaveValue('nonsense');
  await picture(page, 'errors-worker');
  await expectAccessible(page);
  await page.getByLabel('Label 2').fill('zone=a');
  await page.getByLabel('Allowed networks').fill('10.0.0.0/8');
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('gpu-1');
});

test('the job form shows each error at its field', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/train?config=digits');
  await page.getByLabel('Label 1').fill('nonsense');
  await page.getByText('Advanced', { exact: true }).click();
  await page.getByLabel('Time limit').fill('soon');
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page.locator('main .field-error')).toHaveCount(2);
  await expectInvalid(page, page.getByLabel('Label 1'), 'nonsense');
  await expectInvalid(page, page.getByLabel('Time limit'), 'Time limit must be');
  await expect(page.getByLabel('Label 1')).toBeFocused();
  await picture(page, 'errors-job');
  await expectAccessible(page);
  await page.setViewportSize({ width: 380, height: 800 });
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
});

test('the configuration form shows each error at its field', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/configs/new');
  await page.getByLabel('Name', { exact: true }).fill('a/b');
  await page.locator('[id="text.0"]').fill('[]');
  await page.locator('[id="file.1"]').fill('../up.json');
  await page.locator('[id="text.1"]').fill('{}');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.locator('main .field-error')).toHaveCount(3);
  await expectInvalid(page, page.getByLabel('Name', { exact: true }), 'a/b');
  await expectInvalid(page, page.locator('[id="text.0"]'), 'not a JSON object');
  await expectInvalid(page, page.locator('[id="file.1"]'), 'up.json');
  await expect(page.getByLabel('Name', { exact: true })).toBeFocused();
  await expectAccessible(page);
});

test('the token form shows each error at its field', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/account');
  const form = page.locator('form[action="/ui/account/tokens"]');
  await form.locator('#name').fill('My Token');
  await form.locator('#days').fill('0');
  // Otherwise the browser's own validation would reject the form.
  await form.evaluate((form: HTMLFormElement) => (form.noValidate = true));
  await form.getByRole('button').click();
  await expect(page.locator('main .field-error')).toHaveCount(2);
  await expectInvalid(page, form.locator('#name'), 'lower-case');
  await expectInvalid(page, form.locator('#days'), '3660');
  await expect(form.locator('#name')).toBeFocused();
  await expectAccessible(page);
});
