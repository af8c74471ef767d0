// What the page of a new worker does by itself.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { live, signIn } from '../steps';

test('who has waited for a minute is told what it can be', async ({ page, server }) => {
  await page.clock.install();
  await signIn(page, server);
  await page.goto('/admin/workers/new');
  await page.getByLabel('Name').fill('gpu-1');
  await page.getByRole('button', { name: 'Create worker' }).click();
  await live(page);
  const contact = page.locator('.contact');
  await expect(contact).toContainText('Waiting for first contact');
  await page.clock.runFor(50_000);
  await expect(contact.getByRole('listitem')).toHaveCount(0);
  await page.clock.runFor(15_000);
  await expect(contact.getByRole('listitem')).toHaveCount(5);
  await expect(contact).toContainText('The token was not copied whole');
  await expect(page.getByLabel('Worker token', { exact: true }), 'the token is still there').toBeVisible();
  await picture(page, 'contact-causes');
  await expectAccessible(page);
});
