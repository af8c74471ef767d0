// Every page by the Tab key alone: it reaches all controls, the focus is visible, and there is no keyboard trap.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures';
import { live, signIn } from '../steps';
import { PAGES, demoFleet } from '../demo-fleet';

interface Stop {
  /** The element's HTML, for the failure message. */
  html: string;
  hasFocusStyle: boolean;
  covered: boolean;
}

/** Marks the elements that the Tab key should reach, and returns their HTML. */
async function markReachable(page: Page, within: string): Promise<string[]> {
  return page.evaluate((within) => {
    const all = [...document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary, [tabindex]')];
    const radios = (element: HTMLInputElement) => all.filter((other): other is HTMLInputElement => other instanceof HTMLInputElement && other.name === element.name && other.form === element.form);
    const reachable = all.filter((element) => {
      if (!element.closest(within) || element.tabIndex < 0 || element.matches(':disabled, [type=hidden]') || !element.checkVisibility({ visibilityProperty: true })) return false;
      // Of a radio group, Tab reaches only the selected button; arrow keys reach the others.
      return !(element instanceof HTMLInputElement && element.type === 'radio') || element.checked || !radios(element).some(({ checked }) => checked);
    });
    reachable.forEach((element, index) => element.setAttribute('data-stop', `${index}`));
    return reachable.map((element) => element.outerHTML.slice(0, 120));
  }, within);
}

/** Returns the focused element, or `null` if it is the document itself. */
async function focusedStop(page: Page): Promise<(Stop & { at: number }) | null> {
  return page.evaluate(() => {
    const focused = document.activeElement;
    if (!focused || focused === document.body) return null;
    const hasOutline = (element: Element | null) => {
      const style = element && getComputedStyle(element);
      return !!style && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
    };
    const { left, top, width, height } = focused.getBoundingClientRect();
    const points = [top + 4, top + height / 2, top + height - 4].map((y) => document.elementFromPoint(left + width / 2, y));
    const label = (focused as HTMLInputElement).labels?.[0] ?? null;
    const isUncovered = points.some((hit) => [focused, label, focused.closest('label')].some((element) => element && hit && (element.contains(hit) || hit.contains(element))));
    // The focus outline of an SVG shape is its stroke.
    const hasStroke = focused instanceof SVGElement && !!focused.firstElementChild && parseFloat(getComputedStyle(focused.firstElementChild).strokeWidth) >= 2;
    return {
      at: Number(focused.getAttribute('data-stop') ?? -1),
      html: focused.outerHTML.slice(0, 120),
      hasFocusStyle: hasStroke || hasOutline(focused) || hasOutline(label) || hasOutline(focused.parentElement) || hasOutline(focused.nextElementSibling),
      covered: !isUncovered,
    };
  });
}

test('Tab reaches every control of each page, with a visible focus', async ({ page, server }) => {
  test.setTimeout(240_000);
  const fleet = await demoFleet(server);
  await signIn(page, server);
  const scripts = test.info().project.use.javaScriptEnabled ?? true;
  for (const [name, path] of Object.entries(PAGES)) {
    await test.step(name, async () => {
      await page.goto(path(fleet));
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      if (scripts) {
        if (!(await page.locator('.is-plain').count())) await live(page);
        // The script of the editor of configurations enables its fields, and renders what it has found.
        await expect(page.locator('main fieldset[disabled]')).toHaveCount(0);
      }
      // Skip the header of other pages, which is tested once.
      if (name !== 'overview') await page.locator('.skip-link').press('Enter');
      const reachable = await markReachable(page, name === 'overview' ? 'body' : 'main');
      const reached = new Set<number>();
      const invisible: string[] = [];
      let ended = false;
      for (let pressed = 0; pressed < reachable.length * 8 + 20 && !ended; pressed += 1) {
        await page.keyboard.press('Tab');
        const stop = await focusedStop(page);
        ended = stop === null;
        if (!stop || reached.has(stop.at)) continue;
        reached.add(stop.at);
        if (!stop.hasFocusStyle || stop.covered) invisible.push(`${stop.hasFocusStyle ? 'covered' : 'without outline'}: ${stop.html}`);
      }
      const missed = reachable.filter((_, at) => !reached.has(at));
      expect.soft({ invisible, missed, ended }, name).toEqual({ invisible: [], missed: [], ended: true });
    });
  }
  fleet.close();
});
