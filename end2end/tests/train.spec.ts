// The preview of a submit, with and without JavaScript.
import { execFileSync } from 'node:child_process';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { makeWorker, registerGpus, signIn, signInAs } from '../steps';
import type { Server } from '../fixtures';

async function makeFleet(server: Server): Promise<void> {
  for (const [name, labels] of [['gpu-1', { team: 'nlp' }], ['gpu-2', { team: 'vision', zone: 'a' }]] as const) {
    const body = JSON.stringify({ name, worker_type: 'persistent', labels });
    const { token } = await (await server.api('/api/admin/workers', { method: 'POST', body })).json();
    if (name === 'gpu-1') await registerGpus(server, token, 2);
  }
}

test('the address fills in the form, and its button validates it', async ({ page, server }) => {
  await makeFleet(server);
  await signIn(page, server);
  await page.goto('/train?config=digits-quick&gpus=2&labels=team%3Dnlp,zone%3D100%2525&target=auto&priority=7&max_runtime=2h');
  await expect(page.getByRole('radio', { name: 'digits-quick' })).toBeChecked();
  await expect(page.getByLabel('GPUs', { exact: true })).toHaveValue('2');
  await expect(page.getByLabel('Label 1')).toHaveValue('team=nlp');
  // Escaped values are unescaped exactly once.
  await expect(page.getByLabel('Label 2')).toHaveValue('zone=100%25');
  await expect(page.getByLabel('Priority')).toHaveValue('7');
  await page.getByLabel('Label 2').fill('');
  await page.getByLabel('GPUs', { exact: true }).fill('3');
  await page.getByRole('button', { name: 'Check' }).click();
  await expect(page).toHaveURL(/gpus=3/);
  await expect(page.locator('.preview-summary')).toContainText('2 workers: 1 has team=nlp, 0 of them have 3 GPUs.');
  const row = (name: string) => page.getByRole('table', { name: 'Results by worker' }).getByRole('row').filter({ hasText: name });
  await expect(row('gpu-1')).toContainText('this worker has 2');
  await expect(row('gpu-2')).toContainText('this worker has team=vision');
  await expect(page.locator('datalist option')).toHaveCount(3);
  await expectAccessible(page);
  await picture(page, 'train-checked');
  await page.reload();
  await expect(page.getByLabel('GPUs', { exact: true })).toHaveValue('3');
});

test('an invalid form shows its errors in place of the preview', async ({ page, server }) => {
  await signInAs(page, server, 'ada', 'researcher');
  await page.goto('/train?config=digits&priority=11');
  await expect(page.locator('.preview-summary')).toContainText('queue.manage');
  await page.goto('/train?config=digits&max_runtime=soon');
  await expect(page.locator('.preview-summary')).toContainText('Time limit');
  await page.goto('/train?config=nowhere');
  await expect(page.locator('.preview-summary')).toContainText('nowhere');
});

test('results of many workers scroll in their panel, also by keyboard', async ({ page, server }) => {
  for (let n = 1; n <= 12; n += 1) await makeWorker(server, `gpu-${n}`);
  await signIn(page, server);
  await page.goto('/train?config=digits&labels=team%3Dnlp');
  const box = page.getByRole('region', { name: 'Results by worker' });
  await expect(box.locator('tbody tr')).toHaveCount(12);
  const overflow = await box.evaluate((element) => element.scrollHeight - element.clientHeight);
  expect(overflow, 'the box overflows').toBeGreaterThan(0);
  await expectAccessible(page);
  await box.focus();
  await expect(box).toBeFocused();
  await page.keyboard.press('End');
  await expect.poll(() => box.evaluate((element) => element.scrollTop)).toBeGreaterThanOrEqual(overflow - 1);
});

test('the shown curl command submits the same job', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto(`/train?config=digits&target=worker&priority=9&exclusive=true&labels=${encodeURIComponent("team=it's $HOME")}`);
  const curl = await page.locator('pre', { hasText: 'curl -sS' }).innerText();
  const env = { ...process.env, SIMPLETUNER_API_TOKEN: server.adminToken };
  const { job_id: id } = JSON.parse(execFileSync('bash', ['-c', curl], { env, encoding: 'utf8' }));
  const job = await (await server.api(`/api/queue/${id}`)).json();
  expect([job.config_name, job.priority, job.exclusive, job.worker_labels]).toEqual(['digits', 9, true, { team: "it's $HOME" }]);
  expect(await page.locator('pre', { hasText: 'simpletuner jobs submit' }).innerText()).toContain('--priority 9');
  expect(await page.content()).not.toContain(server.adminToken);
});

test('all values of the form are submitted', async ({ page, server }) => {
  await server.api('/api/secrets/HF_TOKEN', { method: 'PUT', body: JSON.stringify({ value: 'hf_0123456789' }) });
  await signIn(page, server);
  await page.goto('/train');
  await page.getByText('Files to submit').click();
  await expect(page.locator('pre', { hasText: 'learning_rate' }).first()).toBeVisible();
  await page.getByLabel('Label 1').fill('team=nlp');
  await page.getByLabel('Label 2').fill('gpu=a100*');
  await page.getByLabel('GPU memory').fill('23.5');
  await page.getByLabel('Accelerator').selectOption('cuda');
  await page.getByText('Advanced', { exact: true }).click();
  await page.getByLabel('Time limit').fill('90m');
  await page.locator('label', { hasText: 'Also retry after trainer failures' }).click();
  await page.locator('summary', { hasText: 'Secrets' }).click();
  await page.getByLabel('HF_TOKEN').check();
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page).toHaveURL(/\/jobs\/j_/);
  const job = await (await server.api(`/api/queue/${page.url().split('/').pop()}`)).json();
  expect(job).toMatchObject({ worker_labels: { team: 'nlp', gpu: 'a100*' }, min_vram_gb: 23.5, accelerator_type: 'cuda', max_runtime_seconds: 5400 });
});

for (const [theme, width] of [['light', 1280], ['dark', 380]] as const) {
  test(`the form fits into ${width} px, ${theme}`, async ({ page, server, context }) => {
    await makeFleet(server);
    await signIn(page, server);
    await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
    await page.setViewportSize({ width, height: 800 });
    await page.goto('/train?labels=team%3Dnlp&priority=5&secret=HF_TOKEN');
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await picture(page, `train-${theme}`);
    await expectAccessible(page);
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(width);
  });
}
