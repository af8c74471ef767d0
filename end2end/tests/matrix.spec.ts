// Every page in every language: it fits, is accessible, does not shift, and logs nothing. Each pair of page, language,
// theme, width and scripts occurs at least once; a page is tested with scripts in every other language.
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn } from '../steps';
import { PAGES, demoFleet } from '../demo-fleet';
import { expectNoShift, holdScriptsAndImages, observeShifts } from '../layout-shifts';

const LANGUAGES = ['en', 'es', 'hi', 'ja', 'pt-BR', 'zh'];
const THEMES = ['light', 'dark'];
const WIDTHS = [1280, 380];
const WIDE_FIRST = [0, 1, 1, 0, 1, 0]; // per language, so that both widths occur with both themes

for (const [number, language] of LANGUAGES.entries()) {
  test.describe(language, () => {
    test.use({ locale: language });

    test('every page fits, is accessible, and has no layout shift', async ({ page, server, context }) => {
      test.setTimeout(300_000);
      const scripts = test.info().project.use.javaScriptEnabled ?? true;
      if (scripts) {
        await observeShifts(page);
        await holdScriptsAndImages(page);
      }
      const fleet = await demoFleet(server);
      await signIn(page, server);
      for (const [index, [name, path]] of Object.entries(PAGES).entries()) {
        if ((index + number + Number(scripts)) % 2) continue; // covered by the other project
        const theme = THEMES[((index >> 1) + (number >> 1)) % 2]!;
        const width = WIDTHS[((index >> 2) + WIDE_FIRST[number]!) % 2]!;
        await test.step(`${name}, ${theme}, ${width}`, async () => {
          await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
          await page.setViewportSize({ width, height: 800 });
          await page.goto(path(fleet));
          await expect(page.locator('html')).toHaveAttribute('lang', language);
          await expect(page.locator('html')).toHaveAttribute('data-theme', theme);
          await expect(page.getByRole('heading', { level: 1 })).toHaveCount(1);
          if (scripts && !(await page.locator('.is-plain').count())) await expect(page.locator('.is-live:visible').first()).toBeVisible();
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          expect.soft(overflow, `${name} is wider than ${width}`).toBeLessThanOrEqual(0);
          if (scripts) await expectNoShift(page, name);
          await picture(page, `matrix/${name}-${language}-${theme}-${width}`);
          await expectAccessible(page);
        });
      }
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      fleet.close();
    });
  });
}
