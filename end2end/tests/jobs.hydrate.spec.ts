// Features of the job pages with scripts only: updates without a reload, and samples in full size.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { waitForJob, live, makeWorker, registerGpus, signIn, submit } from '../steps';

test('the pending reason updates when workers connect and disconnect', async ({ page, server }) => {
  const job = await submit(server, 'digits');
  await signIn(page, server);
  await page.goto(`/jobs/${job}`);
  await live(page);
  const reasons = page.getByRole('region', { name: 'Pending reasons' });
  await expect(reasons).toContainText('No workers registered');
  const { token } = await makeWorker(server, 'rack-1');
  await expect(reasons.getByRole('row').filter({ hasText: 'rack-1' })).toContainText('The agent has never connected');
  await registerGpus(server, token, 1);
  await expect(reasons.getByRole('row').filter({ hasText: 'rack-1' })).toContainText('is connecting');
});

test('an open menu stays with its job when other jobs arrive', async ({ page, server }) => {
  const job = await submit(server, 'digits');
  await signIn(page, server);
  await page.goto('/jobs');
  await live(page);
  await page.locator('.row-menu summary').first().click();
  await submit(server, 'digits-quick');
  // By keyboard, because a click outside the menu closes it.
  await page.getByRole('button', { name: 'Refresh order' }).press('Enter');
  await expect(page.getByRole('row').filter({ hasText: 'digits-quick' })).toBeVisible();
  await expect(page.locator('.row-menu[open]')).toHaveCount(1);
  await expect(page.locator('.row-menu[open] a')).toHaveAttribute('href', new RegExp(`^/jobs/${job}/cancel`));
});

test('keys and a slider browse the samples, and the focus returns', async ({ page, server, agent }) => {
  test.setTimeout(120_000);
  const { token } = await makeWorker(server, 'gpu-1');
  agent({ token, args: ['--persistent'] });
  const job = await submit(server, 'digits-quick');
  await waitForJob(server, job, 'completed');
  await signIn(page, server);
  await page.goto(`/jobs/${job}?show=samples`);
  await live(page);
  const slider = page.getByRole('slider', { name: 'Step' });
  const last = await slider.getAttribute('aria-valuetext');
  await slider.press('ArrowLeft');
  await expect(page).toHaveURL(/step=\d+/);
  await expect(slider).not.toHaveAttribute('aria-valuetext', last ?? '');
  const tile = page.locator('.gallery a').first();
  await tile.focus();
  await tile.press('Enter');
  const viewer = page.getByRole('dialog', { name: 'Full-size sample' });
  await expect(viewer).toBeVisible();
  const caption = viewer.locator('figcaption');
  const before = await caption.innerText();
  await page.keyboard.press('ArrowUp');
  await expect(caption).not.toHaveText(before);
  await expectAccessible(page);
  await picture(page, 'job-viewer');
  await page.keyboard.press('Escape');
  await expect(viewer).toBeHidden();
  await expect(tile).toBeFocused();

  await page.goto(`/jobs/${job}`);
  await live(page);
  await page.getByRole('region', { name: 'Samples' }).locator('.gallery a').first().click();
  await expect(viewer).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(viewer).toBeHidden();
  expect(page.context().pages()).toHaveLength(1);
});
