// Every page in every language: it fits, is accessible, does not shift, and logs nothing. Each pair of page, language,
// theme, width and scripts occurs at least once; a page is tested with scripts in every other language.
import type { Page } from '@playwright/test';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { signIn } from '../steps';
import { PAGES, demoFleet } from '../demo-fleet';

const LANGUAGES = ['en', 'es', 'hi', 'ja', 'pt-BR', 'zh'];
const THEMES = ['light', 'dark'];
const WIDTHS = [1280, 380];
const WIDE_FIRST = [0, 1, 1, 0, 1, 0]; // per language, so that both widths occur with both themes

interface LayoutShift extends PerformanceEntry {
  value: number;
  hadRecentInput: boolean;
  sources: { node: Node | null; previousRect: DOMRect; currentRect: DOMRect }[];
}

/** Records the size of each layout shift, and which elements moved. */
async function observeShifts(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const shifts: { value: number; moved: string[] }[] = [];
    Object.assign(window, { shifts });
    const place = ({ x, y, width, height }: DOMRect) => `${Math.round(x)},${Math.round(y)} ${Math.round(width)}×${Math.round(height)}`;
    const describe = ({ node, previousRect, currentRect }: LayoutShift['sources'][number]) => {
      const element = node instanceof Element ? node : node?.parentElement;
      return `<${element?.localName} class="${element?.className}"> from ${place(previousRect)} to ${place(currentRect)}`;
    };
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries() as LayoutShift[]) {
        if (!hadRecentInput) shifts.push({ value, moved: sources.map(describe) });
      }
    }).observe({ type: 'layout-shift', buffered: true });
  });
}

/**
 * Delays the scripts of each page until the server's part of it is painted: only then are all changes that
 * they make to the layout seen, however fast the machine is.
 */
async function holdScriptsUntilPaint(page: Page): Promise<void> {
  await page.route(/\.wasm$/, async (route) => {
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    await route.continue();
  });
}

async function expectNoShift(page: Page, name: string): Promise<void> {
  const shifts = await page.evaluate(() => (window as unknown as { shifts: { value: number; moved: string[] }[] }).shifts);
  const total = shifts.reduce((sum, { value }) => sum + value, 0);
  const moved = shifts.flatMap(({ moved }) => moved).join('\n');
  expect.soft(total, `${name} moves: ${moved}`).toBeLessThan(0.02);
}

for (const [number, language] of LANGUAGES.entries()) {
  test.describe(language, () => {
    test.use({ locale: language });

    test('every page fits, is accessible, and has no layout shift', async ({ page, server, context }) => {
      test.setTimeout(300_000);
      const scripts = test.info().project.use.javaScriptEnabled ?? true;
      await observeShifts(page);
      await holdScriptsUntilPaint(page);
      const here = await demoFleet(server);
      await signIn(page, server);
      for (const [place, [name, path]] of Object.entries(PAGES).entries()) {
        if ((place + number + Number(scripts)) % 2) continue; // covered by the other project
        const theme = THEMES[((place >> 1) + (number >> 1)) % 2]!;
        const width = WIDTHS[((place >> 2) + WIDE_FIRST[number]!) % 2]!;
        await test.step(`${name}, ${theme}, ${width}`, async () => {
          await context.addCookies([{ name: 'theme', value: theme, url: server.url }]);
          await page.setViewportSize({ width, height: 800 });
          await page.goto(path(here));
          await expect(page.locator('html')).toHaveAttribute('lang', language);
          await expect(page.locator('html')).toHaveAttribute('data-theme', theme);
          await expect(page.getByRole('heading', { level: 1 })).toHaveCount(1);
          if (scripts && !(await page.locator('.is-plain').count())) await expect(page.locator('.is-live:visible').first()).toBeVisible();
          const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          expect.soft(beyond, `${name} is wider than ${width}`).toBeLessThanOrEqual(0);
          if (scripts) await expectNoShift(page, name);
          await picture(page, `matrix/${name}-${language}-${theme}-${width}`);
          await expectAccessible(page);
        });
      }
      here.close();
    });
  });
}
