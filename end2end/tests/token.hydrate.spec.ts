// Live updates on the page of a new worker.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn } from '../steps';

test('after a minute without contact the page shows possible reasons', async ({ page, server }) => {
  await page.clock.install();
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name').fill('gpu-1');
  await page.getByRole('button', { name: 'Create worker' }).click();
  const contact = page.locator('.contact');
  await expect(contact).toContainText('Waiting for the agent to connect');
  await expect(contact.getByRole('listitem')).toHaveCount(0);
  // The time before hydration does not count as part of the minute.
  await expect(async () => {
    await page.clock.runFor(61_000);
    await expect(contact.getByRole('listitem')).toHaveCount(5, { timeout: 500 });
  }).toPass();
  await expect(contact).toContainText('The token is incomplete');
  await expect(page.getByLabel('Worker token', { exact: true }), 'the token is still there').toBeVisible();
  await picture(page, 'contact-causes');
  await expectAccessible(page);
});
