// A new worker: every offered way to start its agent works.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn } from '../steps';

const START_METHODS = ['Shell', 'systemd', 'Docker', 'RunPod', 'Vast.ai', 'Environment file'];

test('labels of the fleet are suggested, and each start command is shown once', async ({ page, server }) => {
  const body = JSON.stringify({ name: 'old', labels: { team: 'nlp' } });
  await server.api('/api/admin/workers', { method: 'POST', body });
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await expect(page.locator('datalist option')).toHaveAttribute('value', 'team=nlp');
  await page.getByLabel('Name').fill("it's new");
  await page.getByLabel('Label 1').fill('team=nlp');
  await page.getByLabel('Label 2').fill('zone=a');
  await picture(page, 'create');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Create worker' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText("it's new");
  const token = await page.getByLabel('Worker token', { exact: true }).innerText();
  await picture(page, 'created');
  await expectAccessible(page);
  const directory = mkdtempSync(join(tmpdir(), 'simpletuner-ways-'));
  for (const method of START_METHODS) {
    const fold = page.locator('details.start-method').filter({ has: page.locator('summary', { hasText: method }) });
    if ((await fold.getAttribute('open')) === null) await fold.locator('summary').click();
    const text = await fold.locator('pre').innerText();
    execFileSync('bash', ['-n'], { input: text });
    expect(text.includes(token), `${method} has the token`).toBe(!['RunPod', 'Vast.ai'].includes(method));
    if (method === 'systemd' && existsSync('/usr/bin/systemd-analyze')) {
      const unit = join(directory, 'simpletuner-worker.service');
      // The program is not installed here, so `/bin/true` replaces it.
      writeFileSync(unit, /<<'END'\n(# The agent[\s\S]*?)\nEND/.exec(text)![1]!.replace('/usr/local/bin/simpletuner-worker', '/bin/true'));
      execFileSync('systemd-analyze', ['verify', '--man=no', unit]);
    }
  }
  rmSync(directory, { recursive: true });
  const listed = await (await server.api('/api/admin/workers')).json();
  expect(listed.workers.find((worker: { name: string }) => worker.name === "it's new").labels).toEqual({ team: 'nlp', zone: 'a' });
  await page.reload();
  expect(await page.content()).not.toContain(token);
  await expect(page.locator('details.start-method')).toHaveCount(0);
});

test('the page of a new worker shows the agent that was started with the environment file', async ({ page, server, shell }) => {
  test.setTimeout(90_000);
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name').fill('gpu-1');
  await page.getByRole('button', { name: 'Create worker' }).click();
  const fold = page.locator('details.start-method').filter({ has: page.locator('summary', { hasText: 'Environment file' }) });
  await fold.locator('summary').click();
  const file = join(server.dataDir, 'worker.env');
  writeFileSync(file, await fold.locator('pre').innerText(), { mode: 0o600 });
  shell(`set -a; . ${file}; simpletuner worker`);
  const worker = async () => (await (await server.api('/api/admin/workers')).json()).workers[0];
  await expect.poll(async () => (await worker()).status, { timeout: 30_000 }).toBe('idle');
  if (!test.info().project.use.javaScriptEnabled && test.info().project.name === 'no-js') {
    // Without scripts this page keeps the token; another tab shows whether the agent has connected.
    const secondTab = page.waitForEvent('popup');
    await page.getByRole('link', { name: 'Check in a new tab' }).click();
    await expect((await secondTab).getByText('Idle').first()).toBeVisible();
    return;
  }
  const contact = page.locator('.contact');
  await expect(contact).toContainText('Connected');
  await expect(contact).toContainText('from 127.0.0.1');
  await expect(contact).toContainText(`agent ${(await worker()).agent_version}`);
  await picture(page, 'created-connected');
});

test('the page of a new worker fits on a phone', async ({ page, server, context }) => {
  await signIn(page, server);
  await context.addCookies([{ name: 'theme', value: 'dark', url: server.url }]);
  await page.setViewportSize({ width: 380, height: 800 });
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name').fill('gpu-1');
  await page.getByRole('button', { name: 'Create worker' }).click();
  const command = page.locator('pre', { hasText: 'simpletuner worker --orchestrator-url' }).first();
  await expect(command).toBeVisible();
  expect(await command.evaluate((pre) => pre.scrollWidth - pre.clientWidth), 'the command wraps').toBeLessThanOrEqual(0);
  await page.locator('summary', { hasText: 'systemd' }).click();
  await picture(page, 'created-dark');
  await expectAccessible(page);
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
});
