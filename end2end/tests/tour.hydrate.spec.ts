// The main pages as new users see them; `make screens` stores these screenshots in docs/screens.
import { join } from 'node:path';
import { expect, test } from '../fixtures';
import { live, signIn } from '../steps';
import { PAGES, demoFleet } from '../demo-fleet';

const SCREENS = [
  'overview', 'jobs', 'jobs-groups', 'jobs-view', 'jobs-logs', 'waiting', 'running', 'completed', 'failed', 'charts', 'log', 'samples', 'configuration',
  'fork', 'compare', 'vote', 'configs', 'config-edit', 'train', 'fleet', 'gpus', 'workers', 'worker', 'usage', 'audit', 'search',
];

test('a tour of the main pages', async ({ page, server, context }) => {
  const takesPictures = !!process.env.SIMPLETUNER_SCREENSHOTS;
  test.setTimeout(takesPictures ? 600_000 : 120_000);
  const fleet = await demoFleet(server);
  await signIn(page, server);
  for (const [theme, width, height] of [['light', 1440, 900], ['dark', 1440, 900], ['light', 380, 844], ['dark', 380, 844]] as const) {
    await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
    await page.setViewportSize({ width, height });
    for (const name of SCREENS) {
      await page.goto(PAGES[name]!(fleet));
      if (!(await page.locator('.is-plain').count())) await live(page);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      if (takesPictures) await page.screenshot({ path: join(__dirname, `../screenshots/tour/${name}-${theme}-${width}.jpg`), type: 'jpeg', quality: 70 });
    }
    // Without pictures, once is enough.
    if (!takesPictures) break;
  }
  fleet.close();
});
