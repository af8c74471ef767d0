// Configurations: read, compared, and what runs them, with and without JavaScript.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn, signInAs } from '../steps';
import type { Server } from '../fixtures';

async function put(server: Server, name: string, files: Record<string, string>): Promise<void> {
  const answer = await server.api(`/api/configs/${encodeURIComponent(name)}`, { method: 'PUT', body: JSON.stringify({ files }) });
  expect(answer.status).toBe(200);
}

const FIRST = { model_type: 'lora', learning_rate: 0.005, hub_token: 'hf_0123456789', steps: 100 };

test('a configuration is read, and two revisions are compared in both views', async ({ page, server }) => {
  await put(server, 'my lora', { 'config.json': JSON.stringify(FIRST), 'notes.toml': 'a = 1\nb = 2\n' });
  await put(server, 'my lora', { 'config.json': JSON.stringify({ ...FIRST, learning_rate: 0.01, warmup: 5 }), 'notes.toml': 'a = 1\nb = 3\n' });
  await server.api('/api/queue/submit', { method: 'POST', body: JSON.stringify({ config_name: 'my lora', target: 'worker' }) });
  await signIn(page, server);
  await page.getByRole('link', { name: 'Configurations' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Configurations');
  await expectAccessible(page);
  await picture(page, 'configs');
  await page.getByRole('link', { name: 'my lora', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('my lora');
  // In one line as it came, it is laid out; what a token is, nobody sees.
  await expect(page.locator('pre', { hasText: '"learning_rate": 0.01,' })).toBeVisible();
  expect(await page.content()).not.toContain('hf_0123456789');
  await expectAccessible(page);
  await picture(page, 'config');
  const rows = page.getByRole('table', { name: 'Revisions' }).getByRole('row');
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(1)).toContainText('1 not ended');

  await page.getByRole('link', { name: 'What changed in revision 2' }).click();
  await expect(page).toHaveURL(/revision=2&against=1$/);
  const values = page.getByRole('table', { name: 'Values that changed' });
  await expect(values.getByRole('row').filter({ hasText: 'learning_rate' })).toHaveText(/learning_rate\s*0\.005\s*0\.01/);
  await expect(values.getByRole('row').filter({ hasText: 'warmup' })).toContainText('not there');
  const lines = page.getByRole('table', { name: 'Changes in notes.toml' });
  await expect(lines.getByRole('row').filter({ hasText: 'b = 2' })).toContainText('−');
  await expect(lines.getByRole('row').filter({ hasText: 'b = 3' })).toContainText('+');
  await expect(lines.locator('mark')).toHaveCount(2);
  await expectAccessible(page);
  await picture(page, 'config-diff');
  await page.getByRole('link', { name: 'Side by side' }).click();
  const pair = page.getByRole('table', { name: 'Changes in notes.toml' }).getByRole('row').filter({ hasText: 'b = 2' });
  await expect(pair).toContainText('b = 3');
  await expectAccessible(page);
  await picture(page, 'config-split');

  // Any two are compared, the other way round too.
  await page.getByLabel('From', { exact: true }).selectOption('2');
  await page.getByLabel('To', { exact: true }).selectOption('1');
  await page.getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByRole('table', { name: 'Values that changed' }).getByRole('row').filter({ hasText: 'warmup' })).toContainText('5');
});

test('names and texts of strangers are text', async ({ page, server }) => {
  const name = '<b>$(id)<b> 100%41 "x"';
  await put(server, name, { 'config.json': '{"a": "</code><script>alert(1)</script>", "b": "\u202Egnp"}' });
  await signIn(page, server);
  await page.goto('/configs');
  await page.getByRole('link', { name, exact: true }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(name);
  await expect(page.locator('pre')).toContainText('</code><script>alert(1)</script>');
  await expect(page.locator('pre')).toContainText('\\u{202e}gnp');
  await page.getByRole('link', { name: 'Train with it' }).click();
  await expect(page.getByRole('radio', { name })).toBeChecked();
});

test('a viewer reads configurations and submits none', async ({ page, server, complaints }) => {
  await signInAs(page, server, 'vic', 'viewer');
  await page.getByRole('link', { name: 'Configurations' }).first().click();
  await page.getByRole('link', { name: 'digits', exact: true }).click();
  await expect(page.locator('pre', { hasText: 'model_type' }).first()).toBeVisible();
  await expect(page.getByRole('link', { name: 'Train with it' })).toHaveCount(0);
  expect((await page.goto('/configs/nowhere'))?.status()).toBe(404);
  complaints.splice(0, complaints.length, ...complaints.filter((line) => !line.includes('404')));
});

test('a configuration that was removed is still read by who comes from its jobs', async ({ page, server }) => {
  await put(server, 'gone', { 'config.json': '{}' });
  expect((await server.api('/api/configs/gone', { method: 'DELETE' })).status).toBe(200);
  await signIn(page, server);
  await page.goto('/configs/gone?revision=1');
  await expect(page.getByText('taken off the list')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Train with it' })).toHaveCount(0);
});

for (const [theme, width] of [['light', 1280], ['dark', 380]] as const) {
  test(`a comparison fits ${width} px, ${theme}`, async ({ page, server, context }) => {
    await put(server, 'c', { 'config.json': JSON.stringify(FIRST, null, 2) });
    await put(server, 'c', { 'config.json': JSON.stringify({ ...FIRST, learning_rate: 0.01 }, null, 2) });
    await signIn(page, server);
    await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
    await page.setViewportSize({ width, height: 800 });
    for (const path of ['/configs', '/configs/c', '/configs/c?revision=2&against=1', '/configs/c?revision=2&against=1&view=split']) {
      await page.goto(path);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      await picture(page, `configs-${theme}-${path.replace(/\W+/g, '-')}`);
      await expectAccessible(page);
      expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
    }
  });
}
