// The main pages as new users see them; `make screens` stores these screenshots in docs/screens.
import { expect, picture, test } from '../fixtures';
import { live, signIn } from '../steps';
import { PAGES, demoFleet } from '../demo-fleet';

const SCREENS = [
  ['overview', 'light', 1280], ['overview', 'dark', 380], ['workers', 'light', 1280], ['worker', 'dark', 1280], ['running', 'light', 1280],
  ['running', 'dark', 380], ['waiting', 'light', 1280], ['log', 'dark', 1280], ['gpus', 'dark', 1280], ['train', 'light', 1280],
  ['usage', 'light', 1280], ['audit', 'light', 1280],
] as const;

test('a tour of the main pages', async ({ page, server, context }) => {
  test.setTimeout(120_000);
  const fleet = await demoFleet(server);
  await signIn(page, server);
  for (const [name, theme, width] of SCREENS) {
    await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
    await page.setViewportSize({ width, height: 900 });
    await page.goto(PAGES[name]!(fleet));
    if (!(await page.locator('.is-plain').count())) await live(page);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await picture(page, `tour/${name}-${theme}-${width}`);
  }
  fleet.close();
});
