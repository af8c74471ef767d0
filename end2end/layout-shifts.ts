// Layout shifts: visible elements that move without an action of the user.
import type { Page } from '@playwright/test';
import { expect } from './fixtures';

interface LayoutShift extends PerformanceEntry {
  value: number;
  hadRecentInput: boolean;
  sources: { node: Node | null; previousRect: DOMRect; currentRect: DOMRect }[];
}

/** Records the size of each layout shift, and which elements moved. */
export async function observeShifts(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const shifts: { value: number; moved: string[] }[] = [];
    Object.assign(window, { shifts });
    const rectText = ({ x, y, width, height }: DOMRect) => `${Math.round(x)},${Math.round(y)} ${Math.round(width)}×${Math.round(height)}`;
    const describe = ({ node, previousRect, currentRect }: LayoutShift['sources'][number]) => {
      const element = node instanceof Element ? node : node?.parentElement;
      return `<${element?.localName} class="${element?.className}"> from ${rectText(previousRect)} to ${rectText(currentRect)}`;
    };
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries() as LayoutShift[]) {
        if (!hadRecentInput) shifts.push({ value, moved: sources.map(describe) });
      }
    }).observe({ type: 'layout-shift', buffered: true });
  });
}

export async function firstPaint(page: Page): Promise<void> {
  await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
}

/**
 * Delays the scripts and images of each page until its HTML is painted: only then are all changes that they make
 * to the layout seen, however fast the machine is.
 */
export async function holdScriptsAndImages(page: Page): Promise<void> {
  const isHeld = ({ pathname }: URL) => /\.(wasm|png|jpe?g|webp|gif)$/.test(pathname);
  await page.route(isHeld, async (route) => {
    await firstPaint(page);
    await route.continue();
  });
}

/** Expects that what is visible did not move since `observeShifts`. */
export async function expectNoShift(page: Page, name: string): Promise<void> {
  const shifts = await page.evaluate(() => (window as unknown as { shifts: { value: number; moved: string[] }[] }).shifts);
  const total = shifts.reduce((sum, { value }) => sum + value, 0);
  const moved = shifts.flatMap(({ moved }) => moved).join('\n');
  expect.soft(total, `${name} moves: ${moved}`).toBeLessThan(0.02);
}
