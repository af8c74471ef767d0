// What a user does on a day, counted in clicks and typed fields, with and without JavaScript: name a job, find it, compare
// three, see why one failed, fork it from its checkpoint, download the weights, and send a colleague the link.
import type { Locator, Page } from '@playwright/test';
import { expect, picture, test } from '../fixtures';
import { demoFleet, points } from '../demo-fleet';
import { Host } from '../host';
import { live, signIn, signInAs, submit, waitForJob } from '../steps';

/** Counts what a user does. Seconds are reported, and never compared. */
class Reader {
  private clicks = 0;
  private fields = 0;
  private since = Date.now();

  constructor(readonly page: Page) {}

  async click(target: Locator): Promise<void> {
    this.clicks += 1;
    await target.click();
  }

  async type(field: Locator, text: string, { enter = false } = {}): Promise<void> {
    this.fields += 1;
    await field.fill(text);
    if (enter) await field.press('Enter');
  }

  begin(): void {
    [this.clicks, this.fields, this.since] = [0, 0, Date.now()];
  }

  /** Ends a story. */
  expect(story: string, clicks: number, fields: number): void {
    const seconds = ((Date.now() - this.since) / 1_000).toFixed(1);
    test.info().annotations.push({ type: 'story', description: `${story}: ${this.clicks} clicks, ${this.fields} fields, ${seconds} s` });
    expect({ clicks: this.clicks, fields: this.fields }, story).toEqual({ clicks, fields });
  }
}

const ERROR = 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.';

test('a day with jobs takes few clicks', async ({ page, server, javaScriptEnabled }) => {
  test.setTimeout(180_000);
  await demoFleet(server);
  const host = await Host.connect(server, 'story', { gpus: 1, labels: { story: 'yes' } });
  const start = async (name: string, learning_rate: number) => {
    const job = await submit(server, 'digits', { name, overrides: { learning_rate }, worker_labels: { story: 'yes' } });
    return { job, offer: await host.run() };
  };
  const completed: string[] = [];
  for (const [name, rate] of [['rate low', 1e-4], ['rate mid', 1e-3], ['rate high', 1e-2]] as const) {
    const { job, offer } = await start(name, rate);
    await host.progress(offer, points(0, 400, 1_000, 0.4));
    await host.file(offer, 'model.safetensors', 'final', Buffer.alloc(2_000, 7));
    await host.report(offer, 'completed');
    completed.push(job);
  }
  const { job: failed, offer } = await start('too large', 5e-2);
  await host.checkpoint(offer, 200);
  await host.log(offer, `step 200\n${ERROR}\n`);
  await host.report(offer, 'failed', { error: ERROR, error_line: 2, exit_code: 1 });
  await waitForJob(server, failed, 'failed');

  await signIn(page, server);
  const ready = () => javaScriptEnabled ? live(page) : Promise.resolve();
  const reader = new Reader(page);
  const heading = page.getByRole('heading', { level: 1 });

  await page.goto(`/jobs/${completed[1]}`);
  reader.begin();
  await reader.click(page.getByRole('link', { name: 'Edit description' }));
  await reader.type(page.getByLabel('Name'), 'warm start');
  await reader.click(page.getByRole('button', { name: 'Save' }));
  await expect(heading).toHaveText('warm start');
  reader.expect('name a job', 2, 1);

  await page.goto('/');
  reader.begin();
  await reader.click(page.getByRole('link', { name: 'Jobs', exact: true }).first());
  await reader.type(page.locator('#content input[type=search]'), 'warm', { enter: true });
  await expect(page.getByRole('rowheader')).toHaveCount(1);
  await reader.click(page.getByRole('rowheader').getByRole('link', { name: 'warm start' }));
  await expect(heading).toHaveText('warm start');
  reader.expect('find it', 2, 1);

  await page.goto('/jobs?q=status:completed+worker:story');
  await ready();
  reader.begin();
  for (const name of ['rate low', 'warm start', 'rate high']) await reader.click(page.getByRole('checkbox', { name: new RegExp(`^Select ${name} `) }));
  await reader.click(page.locator('.pick-offers').getByRole('button', { name: 'Compare' }));
  const differences = page.getByRole('table', { name: 'Configuration differences' });
  await expect(differences.getByRole('rowheader')).toHaveText(['learning_rate']);
  reader.expect('compare three', 4, 0);
  const shared = page.url();

  await page.goto('/jobs');
  await ready();
  reader.begin();
  await reader.click(page.getByRole('rowheader').getByRole('link', { name: 'too large' }));
  await expect(page.locator('.reason-head')).toHaveText(ERROR);
  reader.expect('see why one failed', 1, 0);

  reader.begin();
  await reader.click(page.getByRole('link', { name: 'Compare with the last job that completed' }));
  await expect(differences.getByRole('rowheader')).toHaveText(['learning_rate']);
  reader.expect('see what differs from the last one that completed', 1, 0);

  await page.goto(`/jobs/${failed}`);
  reader.begin();
  await reader.click(page.getByRole('link', { name: 'Fork', exact: true }));
  await expect(page.getByLabel('Starting point')).toHaveValue('checkpoint-200');
  await picture(page, 'fork');
  await reader.type(page.getByLabel('Override 1'), 'learning_rate=0.0002');
  await reader.click(page.getByRole('button', { name: 'Submit job' }));
  await expect(page.locator('.byline')).toContainText('forked from checkpoint-200 of too large');
  reader.expect('fork it with another learning rate', 2, 1);
  const family = page.getByRole('region', { name: 'Related jobs' });
  await expect(family.getByRole('listitem')).toHaveCount(2);
  await expect(family.getByRole('listitem').last()).toContainText('Resume from checkpoint-200');
  await picture(page, 'forked');

  await page.goto(`/jobs/${completed[0]}`);
  reader.begin();
  const download = page.waitForEvent('download');
  await reader.click(page.getByRole('link', { name: 'Download weights' }));
  expect((await download).suggestedFilename()).toBe('model.safetensors');
  reader.expect('download the weights', 1, 0);

  await page.goto('about:blank'); // no request is under way that would be rejected
  await page.context().clearCookies();
  await signInAs(page, server, 'vic', 'viewer');
  await page.goto(shared);
  await expect(differences.getByRole('rowheader')).toHaveText(['learning_rate']);
  host.close();
});
