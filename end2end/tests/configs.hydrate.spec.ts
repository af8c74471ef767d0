// The editor of a configuration: what only works with a script.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn } from '../steps';
import { firstPaint, observeShifts } from '../layout-shifts';
import type { Page } from '@playwright/test';

const TEXT = '{\n  "--model_type": "lora",\n  "--learning_rate": 1e-4,\n\n  "--x": [ 1,2 ]\n}\n';

/** Opens the editor with this text, and waits for its script. */
async function edit(page: Page, text: string): Promise<void> {
  await page.goto('/configs/new');
  await expect(page.getByRole('group', { name: 'Usual settings' })).toBeEnabled();
  await page.getByLabel('Text: config.json').fill(text);
}

const selected = (page: Page) =>
  page.getByLabel('Text: config.json').evaluate((area: HTMLTextAreaElement) => area.value.slice(area.selectionStart, area.selectionEnd));

test('the text is checked while it is typed, and each finding leads to its place', async ({ page, server }) => {
  await signIn(page, server);
  await edit(page, '{}');
  const text = page.getByLabel('Text: config.json');
  const findings = page.locator('[id="findings.0"]');
  await expect(findings).toHaveText('No problems found.');
  await text.fill('{\n  "learning_rate": 1e-4,\n}\n');
  await expect(findings).toContainText('Remove this comma');
  await expect(text).toHaveAttribute('aria-invalid', 'true');
  await findings.getByRole('button', { name: 'Line 2, column 24' }).click();
  await expect(text).toBeFocused();
  expect(await selected(page)).toBe(',');
  // Positions are those of the browser, after characters of two units and of several bytes.
  await text.fill('{"\u{1f600}é": "\u202e", "learnign_rate": "fast", "learning_rate": "fast", "output_dir": "x"}');
  await expect(text).toHaveAttribute('aria-invalid', 'false');
  await expect(findings).toContainText('Did you mean learning_rate?');
  await expect(findings).toContainText('learning_rate should be a number');
  await expect(findings).toContainText('the agent replaces this value');
  await findings.getByRole('listitem').filter({ hasText: 'Did you mean' }).getByRole('button').click();
  expect(await selected(page)).toBe('"learnign_rate"');
  await expectAccessible(page);
  await text.fill('{"seed": 1, "seed": 2, "</textarea><script>": 1e400}');
  await expect(findings).toContainText('This number is too large.');
  await text.fill('{"seed": 1, "</ul><script>alert(1)</script>": 1, "</ul><script>alert(1)</script>": 2}');
  await expect(findings).toContainText('</ul><script>alert(1)</script> is set twice.');
  await text.fill('['.repeat(500));
  await expect(findings).toContainText('Too many brackets');
  await text.fill('\ufeff{}');
  await expect(findings).toContainText('byte order mark');

  // Another file has the rules of its name.
  const other = page.locator('section').filter({ has: page.getByLabel('Text: New file') }).first();
  await other.getByLabel('Text: New file').fill('[1, 2');
  await expect(other.locator('.findings')).toBeEmpty();
  await other.getByLabel('File name').fill('prompts.json');
  await expect(other.locator('.findings')).toContainText('This bracket is not closed.');
});

test('a field changes its value in the text, and the text its field', async ({ page, server }) => {
  await signIn(page, server);
  await edit(page, TEXT);
  const text = page.getByLabel('Text: config.json');
  const [model, rate, seed] = ['model_type', 'learning_rate', 'seed'].map((name) => page.getByLabel(name, { exact: true }));
  await expect(model!).toHaveValue('lora');
  await expect(rate!).toHaveValue('1e-4');
  await expect(seed!).toHaveValue('');
  await rate!.fill('5e-5');
  await seed!.fill('42');
  await model!.focus();
  const changed = TEXT.replace('1e-4', '5e-5').replace('[ 1,2 ]', '[ 1,2 ],\n  "--seed": 42');
  await expect(text).toHaveValue(changed);
  await seed!.fill('');
  await model!.focus();
  await expect(text).toHaveValue(TEXT.replace('1e-4', '5e-5'));
  await text.fill('{"learning_rate": "0.1", "seed": {}}');
  await expect(rate!).toHaveValue('0.1');
  await expect(seed!).toBeDisabled();
  await text.fill('{');
  await expect(rate!).toBeDisabled();
  // What is saved is the text.
  await text.fill('{"learning_rate": 0.1}');
  await page.getByLabel('Name', { exact: true }).fill('fields');
  await rate!.fill('0.2');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('fields');
  const { bundle } = await (await server.api('/api/configs/fields')).json();
  expect(bundle.files['config.json']).toBe('{"learning_rate": 0.2}');
});

test('Enter keeps the indentation, Tab moves on, and lines have numbers', async ({ page, server }) => {
  await signIn(page, server);
  await edit(page, '');
  const text = page.getByLabel('Text: config.json');
  await text.pressSequentially('{');
  await text.press('Enter');
  await text.pressSequentially('"a": 1,');
  await text.press('Enter');
  await text.pressSequentially('"b": 2');
  await expect(text).toHaveValue('{\n  "a": 1,\n  "b": 2');
  await text.press('Control+z');
  await expect(text).not.toHaveValue('{\n  "a": 1,\n  "b": 2');
  await text.press('Tab');
  await expect(text).not.toBeFocused();
  const lines = page.locator('.editor-lines').first();
  await text.fill(Array.from({ length: 300 }, () => ' ').join('\n'));
  await expect(lines).toContainText('300');
  await text.evaluate((area) => area.scrollTo(0, 2_000));
  await expect.poll(() => lines.evaluate((lines) => lines.scrollTop)).toBe(2_000);
});

test('the editor does not move while its script loads', async ({ page, server }) => {
  await signIn(page, server);
  await observeShifts(page);
  await page.goto('/configs/digits/edit');
  await firstPaint(page);
  await expect(page.getByRole('group', { name: 'Usual settings' })).toBeEnabled();
  expect(await page.evaluate(() => (window as unknown as { shifts: { value: number }[] }).shifts.filter((shift) => shift.value > 0.001))).toEqual([]);
});

for (const [width, theme] of [[1280, 'light'], [1280, 'dark'], [380, 'light'], [380, 'dark']] as const) {
  test(`the editor fits ${width} px, ${theme}`, async ({ page, server, context }) => {
    await signIn(page, server);
    await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
    await page.setViewportSize({ width, height: 1000 });
    await edit(page, TEXT.replace('"--x": [ 1,2 ]', '"--learnign_rate": 2,\n  "output_dir": "/home/ada/training/with/a/very/long/path/for/a/phone",\n  "seed": "many",\n  "y": ,'));
    await expect(page.locator('.findings').first()).toContainText('missing before this');
    await picture(page, `config-editor-error-${theme}-${width}`);
    await expectAccessible(page);
    await page.getByLabel('Text: config.json').fill(TEXT.replace('"--x": [ 1,2 ]', '"--learnign_rate": 2,\n  "output_dir": "/home/ada/training/with/a/very/long/path/for/a/phone",\n  "seed": "many"'));
    await expect(page.locator('.findings').first()).toContainText('Did you mean');
    await page.locator('summary', { hasText: 'Known keys' }).click();
    await picture(page, `config-editor-${theme}-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  });
}
