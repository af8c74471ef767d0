// The width of a column is dragged.
import type { Page } from '@playwright/test';
import { expect, picture, test } from '../fixtures';
import { live, signIn, submit } from '../steps';

const heading = (page: Page, name: string) => page.locator('table.jobs thead th').filter({ hasText: name });
/** Its width in pixels; 0 while the list is rendered anew. */
const width = async (page: Page, name: string) => Math.round((await heading(page, name).boundingBox())?.width ?? 0);

/** Drags the right edge of a heading. */
async function drag(page: Page, name: string, distance: number): Promise<void> {
  const { x, y, width, height } = (await heading(page, name).boundingBox())!;
  await page.mouse.move(x + width - 3, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width - 3 + distance / 2, y + height / 2);
  await page.mouse.move(x + width - 3 + distance, y + height / 2);
}

test('the edge of a heading is dragged to set the width of its column', async ({ page, server }) => {
  await submit(server, 'digits');
  await signIn(page, server);
  await page.setViewportSize({ width: 1440, height: 800 });
  await page.goto('/jobs?columns=status,user,submitted&q=digits');
  await live(page);
  const before = { status: await width(page, 'Status'), user: await width(page, 'User') };
  const status = before.status + 70;
  await drag(page, 'Status', 70);
  expect(await width(page, 'Status'), 'it follows the pointer').toBe(status);
  expect(await width(page, 'User'), 'others stay').toBe(before.user);
  await picture(page, 'job-columns-dragged');
  await page.mouse.up();
  const widths = () => Object.fromEntries((new URL(page.url()).searchParams.get('widths') ?? '').split(',').map((part) => part.split(':')));
  await expect.poll(widths).toMatchObject({ status: `${status}`, user: `${before.user}` });
  await expect(page).toHaveURL(/q=digits/);
  await expect(page, 'a drag does not sort').not.toHaveURL(/sort=/);
  await expect.poll(() => width(page, 'Status')).toBe(status);

  // The name too, at most 800 px.
  await drag(page, 'Job', 5_000);
  await page.mouse.up();
  await expect.poll(widths).toMatchObject({ name: '800', status: `${status}` });
  await page.reload();
  await live(page);
  expect(await width(page, 'Status')).toBe(status);

  const edge = heading(page, 'Job').locator('.resize-handle');
  await edge.click();
  await expect.poll(widths, 'a click changes nothing').toMatchObject({ name: '800', status: `${status}` });
  await edge.dblclick();
  await expect(page).not.toHaveURL(/widths=/);
  await expect.poll(() => width(page, 'Status')).toBe(before.status);
});
