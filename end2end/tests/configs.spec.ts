// Configurations: read, compare, edit, and what runs them, with and without JavaScript.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn, signInAs } from '../steps';
import type { Server } from '../fixtures';

async function put(server: Server, name: string, files: Record<string, string>): Promise<void> {
  const response = await server.api(`/api/configs/${encodeURIComponent(name)}`, { method: 'PUT', body: JSON.stringify({ files }) });
  expect(response.status).toBe(200);
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
  // The single line of JSON is formatted, and the token is masked.
  await expect(page.locator('pre', { hasText: '"learning_rate": 0.01,' })).toBeVisible();
  expect(await page.content()).not.toContain('hf_0123456789');
  await expectAccessible(page);
  await picture(page, 'config');
  const rows = page.getByRole('table', { name: 'Revisions' }).getByRole('row');
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(1)).toContainText('Queued: 1');

  await page.getByRole('link', { name: 'changes: revision 2' }).click();
  await expect(page).toHaveURL(/revision=2&against=1$/);
  const values = page.getByRole('table', { name: 'Changed values' });
  await expect(values.getByRole('row').filter({ hasText: 'learning_rate' })).toHaveText(/learning_rate\s*0\.005\s*0\.01/);
  await expect(values.getByRole('row').filter({ hasText: 'warmup' })).toContainText('not set');
  const lines = page.getByRole('table', { name: 'Changes in notes.toml' });
  await expect(lines.getByRole('row').filter({ hasText: 'b = 2' })).toContainText('−');
  await expect(lines.getByRole('row').filter({ hasText: 'b = 3' })).toContainText('+');
  await expect(lines.locator('mark')).toHaveCount(2);
  await expectAccessible(page);
  await picture(page, 'config-diff');
  await page.getByRole('link', { name: 'Split' }).click();
  const pairedRow = page.getByRole('table', { name: 'Changes in notes.toml' }).getByRole('row').filter({ hasText: 'b = 2' });
  await expect(pairedRow).toContainText('b = 3');
  await expectAccessible(page);
  await picture(page, 'config-split');

  // Any two revisions can be compared, in either order.
  await page.getByLabel('From', { exact: true }).selectOption('2');
  await page.getByLabel('To', { exact: true }).selectOption('1');
  await page.getByRole('region', { name: 'Revisions' }).getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByRole('table', { name: 'Changed values' }).getByRole('row').filter({ hasText: 'warmup' })).toContainText('5');
});

test('names and contents of configurations are escaped', async ({ page, server }) => {
  const name = '<b>$(id)<b> 100%41 "x"';
  await put(server, name, { 'config.json': '{"a": "</code><script>alert(1)</script>", "b": "\u202Egnp"}' });
  await signIn(page, server);
  await page.goto('/configs');
  await page.getByRole('link', { name, exact: true }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(name);
  await expect(page.locator('pre')).toContainText('</code><script>alert(1)</script>');
  await expect(page.locator('pre')).toContainText('\\u{202e}gnp');
  await page.getByRole('link', { name: 'New job' }).click();
  await expect(page.getByRole('radio', { name })).toBeChecked();
});

test('a viewer can read configurations but not submit them', async ({ page, server, consoleErrors }) => {
  await signInAs(page, server, 'vic', 'viewer');
  await page.getByRole('link', { name: 'Configurations' }).first().click();
  await page.getByRole('link', { name: 'digits', exact: true }).click();
  await expect(page.locator('pre', { hasText: 'model_type' }).first()).toBeVisible();
  await expect(page.getByRole('link', { name: 'New job' })).toHaveCount(0);
  await expect(page.getByRole('link', { name: 'Edit', exact: true })).toHaveCount(0);
  expect((await page.goto('/configs/nowhere'))?.status()).toBe(404);
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !line.includes('404')));
});

test('a deleted configuration can be read through the links of its jobs', async ({ page, server }) => {
  await put(server, 'gone', { 'config.json': '{}' });
  expect((await server.api('/api/configs/gone', { method: 'DELETE' })).status).toBe(200);
  await signIn(page, server);
  await page.goto('/configs/gone?revision=1');
  await expect(page.getByText('This configuration was deleted')).toBeVisible();
  await expect(page.getByRole('link', { name: 'New job' })).toHaveCount(0);
});

test('an empty list of configurations links to the form for the first one', async ({ page, server }) => {
  const { configs } = await (await server.api('/api/configs')).json();
  for (const { name } of configs) expect((await server.api(`/api/configs/${name}`, { method: 'DELETE' })).status).toBe(200);
  await signIn(page, server);
  for (const path of ['/train', '/configs']) {
    await page.goto(path);
    await expect(page.getByText('No configurations yet')).toBeVisible();
    await expectAccessible(page);
  }
  await picture(page, 'configs-none');
  await page.locator('.empty').getByRole('link', { name: 'New configuration' }).click();
  await expect(page).toHaveURL(/\/configs\/new$/);
});

const HOSTILE = 'one\n\ttwo </textarea><script>alert(1)</script> &lt;b&gt; 漢字\n';

async function files(server: Server, name: string): Promise<Record<string, string>> {
  return (await (await server.api(`/api/configs/${encodeURIComponent(name)}`)).json()).bundle.files;
}

test('a configuration is edited in the browser, and its text stays unchanged', async ({ page, server }) => {
  test.setTimeout(90_000);
  await signIn(page, server);
  await page.goto('/configs');
  await page.getByRole('link', { name: 'New configuration' }).click();
  await expectAccessible(page);
  await picture(page, 'config-new');
  const main = page.getByLabel('Text: config.json');
  await page.getByLabel('Name', { exact: true }).fill('tiny <b>lora');
  await main.fill('{\n  "learning_rate": \n}\n');
  await page.getByLabel('File name').first().fill('prompts/a.txt');
  await page.getByLabel('Text: New file').first().fill(HOSTILE);
  await page.getByRole('button', { name: 'Save' }).click();
  // Errors appear at their fields, and the entered values remain.
  await expect(page.getByRole('main').getByRole('alert')).toContainText('config.json is no usable JSON object');
  await expect(main).toHaveAttribute('aria-invalid', 'true');
  await expect(main).toHaveValue('{\n  "learning_rate": \n}\n');
  await expect(page.getByLabel('Name', { exact: true })).toHaveValue('tiny <b>lora');
  await expect(page.getByLabel('Text: prompts/a.txt')).toHaveValue(HOSTILE);
  await expectAccessible(page);
  await picture(page, 'config-new-rejected');
  await main.fill('\n{"learning_rate": 0.1}\n');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('main').getByText('Configuration saved.')).toBeVisible();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('tiny <b>lora');
  expect(await files(server, 'tiny <b>lora')).toEqual({ 'config.json': '\n{"learning_rate": 0.1}\n', 'prompts/a.txt': HOSTILE });

  // Saving without changes creates no revision.
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await expect(page.getByLabel('Text: prompts/a.txt')).toHaveValue(HOSTILE);
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('table', { name: 'Revisions' }).getByRole('row')).toHaveCount(2);
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await page.getByLabel('Remove this file').check();
  await main.fill('{"learning_rate": 0.2}');
  for (const [width, scheme] of [[1280, 'light'], [380, 'dark']] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await picture(page, `config-edit-${width}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  }
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('main').getByText('Configuration saved.')).toBeVisible();
  expect(await files(server, 'tiny <b>lora')).toEqual({ 'config.json': '{"learning_rate": 0.2}' });

  // Creating a configuration with an existing name links to that configuration.
  await page.goto('/configs/new');
  await page.getByLabel('Name', { exact: true }).fill('tiny <b>lora');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('main').getByRole('alert')).toContainText('This name is taken.');
  await page.getByRole('main').getByRole('alert').getByRole('link').click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Edit tiny <b>lora');
});

test('concurrent edits of a configuration do not overwrite each other', async ({ page, server }) => {
  await put(server, 'c', { 'config.json': '{"seed": 1}' });
  await signIn(page, server);
  await page.goto('/configs/c/edit');
  await put(server, 'c', { 'config.json': '{"seed": 2}' });
  await page.getByLabel('Text: config.json').fill('{"seed": 3}');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('main').getByRole('alert')).toContainText('Revision 2 was saved while you were editing.');
  await expect(page.getByRole('main').getByRole('alert').getByRole('link')).toHaveAttribute('href', '/configs/c?revision=2&against=1');
  await expect(page.getByLabel('Text: config.json')).toHaveValue('{"seed": 3}');
  await expectAccessible(page);
  await picture(page, 'config-edit-late');
  expect(await files(server, 'c')).toEqual({ 'config.json': '{"seed": 2}' });
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('main').getByText('Configuration saved.')).toBeVisible();
  expect(await files(server, 'c')).toEqual({ 'config.json': '{"seed": 3}' });
});

test('a configuration is duplicated under a new name', async ({ page, server }) => {
  await put(server, 'orig "<i>', { 'config.json': '{"seed": 1}\n', 'notes.txt': HOSTILE });
  await put(server, 'orig "<i>', { 'config.json': '{"seed": 2}\n' });
  await signIn(page, server);
  await page.goto('/configs');
  await page.getByRole('link', { name: 'orig "<i>', exact: true }).click();
  await page.getByRole('table', { name: 'Revisions' }).getByRole('link', { name: '1', exact: true }).click();
  await page.getByRole('link', { name: 'Duplicate' }).click();
  await expect(page.getByLabel('Name', { exact: true })).toHaveValue('Copy of orig "<i>');
  await expect(page.getByText('A copy of orig "<i>, revision 1.')).toBeVisible();
  await expect(page.getByLabel('Text: config.json')).toHaveValue('{"seed": 1}\n');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Copy of orig "<i>');
  expect(await files(server, 'Copy of orig "<i>')).toEqual({ 'config.json': '{"seed": 1}\n', 'notes.txt': HOSTILE });

  // The same name again is rejected, with the text kept.
  await page.goto(`/configs/new?from=${encodeURIComponent('orig "<i>')}`);
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('main').getByRole('alert')).toContainText('This name is taken.');
  await expect(page.getByLabel('Text: config.json')).toHaveValue('{"seed": 2}\n');
});

test('a configuration is deleted after a confirmation', async ({ page, server, consoleErrors }) => {
  await put(server, 'old one', { 'config.json': '{}' });
  await signIn(page, server);
  await page.goto('/configs/old%20one');
  await page.getByRole('link', { name: 'Delete' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Delete old one?');
  await expectAccessible(page);
  await picture(page, 'config-delete');
  // A revision that this page did not show prevents it.
  await put(server, 'old one', { 'config.json': '{"seed": 1}' });
  await page.getByRole('button', { name: 'Delete configuration' }).click();
  await expect(page.getByRole('alert').first()).toBeVisible();
  expect((await server.api('/api/configs/old%20one')).status).toBe(200);
  await page.getByRole('link', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete configuration' }).click();
  await expect(page.getByText('This configuration was deleted')).toBeVisible();
  expect((await server.api('/api/configs/old%20one')).status).toBe(404);
  // A deleted one can be duplicated, but neither edited nor deleted again.
  await expect(page.getByRole('link', { name: 'Duplicate' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'Delete' })).toHaveCount(0);
  expect((await page.goto('/configs/old%20one/delete'))?.status()).toBe(404);
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !line.includes('404')));
});

test('another user\u2019s configuration cannot be deleted', async ({ page, server }) => {
  await signInAs(page, server, 'rita', 'researcher');
  await page.goto('/configs/digits');
  await expect(page.getByRole('link', { name: 'Delete' })).toHaveCount(0);
  await page.goto('/configs/digits/delete');
  await expect(page.getByText('It belongs to another user.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Delete configuration' })).toBeDisabled();
});

test('a revision links to its jobs', async ({ page, server }) => {
  await put(server, 'c', { 'config.json': '{"seed": 1}' });
  await put(server, 'c', { 'config.json': '{"seed": 2}' });
  const submit = async (revision: number, job_name: string) => {
    const body = JSON.stringify({ config_name: 'c', config_revision: revision, name: job_name, target: 'worker' });
    const response = await server.api('/api/queue/submit', { method: 'POST', body });
    expect(response.status).toBe(201);
    return (await response.json()).job_id;
  };
  await submit(1, 'first of one');
  const cancelled = await submit(2, 'first of two');
  await submit(2, 'second of two');
  expect((await server.api(`/api/queue/${cancelled}/cancel`, { method: 'POST' })).status).toBe(200);
  await signIn(page, server);
  await page.goto('/configs/c');
  const row = page.getByRole('table', { name: 'Revisions' }).getByRole('row').nth(1);
  await expect(row).toContainText('Queued: 1');
  await expect(row).toContainText('Cancelled: 1');
  await row.getByRole('link', { name: '2: jobs of revision 2' }).click();
  await expect(page).toHaveURL(/q=revision%3A2&config=c$/);
  await expect(page.getByRole('link', { name: 'second of two' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'first of one' })).toHaveCount(0);
});

test('a configuration is compared with another one', async ({ page, server, consoleErrors }) => {
  await put(server, 'left', { 'config.json': '{"seed": 1}' });
  await put(server, 'left', { 'config.json': '{"seed": 2}' });
  await put(server, 'right', { 'config.json': '{"seed": 3}' });
  await signIn(page, server);
  await page.goto('/configs/right');
  const other = page.getByRole('region', { name: 'Compare with another configuration' });
  await other.getByLabel('Other configuration').selectOption('left');
  await other.getByRole('button', { name: 'Compare' }).click();
  const values = page.getByRole('table', { name: 'Changed values' });
  await expect(page.getByRole('heading', { level: 2, name: 'left, revision 2 \u2192 right, revision 1' })).toBeVisible();
  await expect(values.getByRole('row').filter({ hasText: 'seed' })).toHaveText(/seed\s*2\s*3/);
  await expectAccessible(page);
  await picture(page, 'config-other');
  await other.getByLabel('Revision').selectOption('1');
  await other.getByRole('button', { name: 'Compare' }).click();
  await expect(values.getByRole('row').filter({ hasText: 'seed' })).toHaveText(/seed\s*1\s*3/);
  // Another name has other revisions: its newest one is meant.
  await other.getByLabel('Other configuration').selectOption('digits');
  await other.getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByRole('heading', { level: 2, name: /^digits, revision \d+ \u2192 right, revision 1$/ })).toBeVisible();

  // A deleted one can be compared through the address; an unknown one is not found.
  expect((await server.api('/api/configs/left', { method: 'DELETE' })).status).toBe(200);
  await page.goto('/configs/right?with=left&against=1');
  await expect(values.getByRole('row').filter({ hasText: 'seed' })).toHaveText(/seed\s*1\s*3/);
  expect((await page.goto('/configs/right?with=nowhere'))?.status()).toBe(404);
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !line.includes('404')));
});

test('a rejected text is kept, with what is wrong at which place', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/configs/new');
  const main = page.getByLabel('Text: config.json');
  await page.getByLabel('Name', { exact: true }).fill('broken');
  await main.fill('{\n  "seed": 1,\n  "\u{1f600}": "\u202e",\n}\n');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(main).toHaveValue('{\n  "seed": 1,\n  "\u{1f600}": "\u202e",\n}\n');
  const findings = page.locator('.findings').first();
  await expect(findings).toContainText('Remove this comma');
  await expect(findings.getByText('Line 3, column 11').locator('visible=true')).toBeVisible();
  // Warnings do not prevent saving.
  await main.fill('{"sed": 1, "a": 1, "a": 2}');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('broken');
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await expect(findings).toContainText('Did you mean seed?');
  await expect(findings).toContainText('a is set twice.');
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
