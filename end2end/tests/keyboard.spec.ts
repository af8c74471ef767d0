// Every page by the Tab key alone: it reaches all controls, the focus is visible, and there is no keyboard trap.
import type { Page } from '@playwright/test';
import { expect, test } from '../fixtures';
import { signIn } from '../steps';
import { PAGES, demoFleet } from '../demo-fleet';

interface Stop {
  /** The element's HTML, for the failure message. */
  what: string;
  seen: boolean;
  covered: boolean;
}

/** Marks the elements that the Tab key should reach, and returns their HTML. */
async function markReachable(page: Page, within: string): Promise<string[]> {
  return page.evaluate((within) => {
    const all = [...document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary, [tabindex]')];
    const radios = (one: HTMLInputElement) => all.filter((other): other is HTMLInputElement => other instanceof HTMLInputElement && other.name === one.name && other.form === one.form);
    const reachable = all.filter((one) => {
      if (!one.closest(within) || one.tabIndex < 0 || one.matches(':disabled, [type=hidden]') || !one.checkVisibility({ visibilityProperty: true })) return false;
      // Of a radio group, Tab reaches only the selected button; arrow keys reach the others.
      return !(one instanceof HTMLInputElement && one.type === 'radio') || one.checked || !radios(one).some(({ checked }) => checked);
    });
    reachable.forEach((one, at) => one.setAttribute('data-stop', `${at}`));
    return reachable.map((one) => one.outerHTML.slice(0, 120));
  }, within);
}

/** Returns the focused element, or `null` if it is the document itself. */
async function focusedStop(page: Page): Promise<(Stop & { at: number }) | null> {
  return page.evaluate(() => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    const outlined = (element: Element | null) => {
      const style = element && getComputedStyle(element);
      return !!style && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
    };
    const { left, top, width, height } = one.getBoundingClientRect();
    const points = [top + 4, top + height / 2, top + height - 4].map((y) => document.elementFromPoint(left + width / 2, y));
    const label = (one as HTMLInputElement).labels?.[0] ?? null;
    const own = points.some((above) => [one, label, one.closest('label')].some((element) => element && above && (element.contains(above) || above.contains(element))));
    // The focus outline of an SVG shape is its stroke.
    const lined = one instanceof SVGElement && !!one.firstElementChild && parseFloat(getComputedStyle(one.firstElementChild).strokeWidth) >= 2;
    return {
      at: Number(one.getAttribute('data-stop') ?? -1),
      what: one.outerHTML.slice(0, 120),
      seen: lined || outlined(one) || outlined(label) || outlined(one.parentElement) || outlined(one.nextElementSibling),
      covered: !own,
    };
  });
}

test('Tab reaches every control of each page, with a visible focus', async ({ page, server }) => {
  test.setTimeout(240_000);
  const fleet = await demoFleet(server);
  await signIn(page, server);
  for (const [name, path] of Object.entries(PAGES)) {
    await test.step(name, async () => {
      await page.goto(path(fleet));
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      // Skip the header of other pages, which is tested once.
      if (name !== 'overview') await page.locator('.skip-link').press('Enter');
      const wanted = await markReachable(page, name === 'overview' ? 'body' : 'main');
      const reached = new Set<number>();
      const unseen: string[] = [];
      let ended = false;
      for (let pressed = 0; pressed < wanted.length * 8 + 20 && !ended; pressed += 1) {
        await page.keyboard.press('Tab');
        const stop = await focusedStop(page);
        ended = stop === null;
        if (!stop || reached.has(stop.at)) continue;
        reached.add(stop.at);
        if (!stop.seen || stop.covered) unseen.push(`${stop.seen ? 'covered' : 'without outline'}: ${stop.what}`);
      }
      const missed = wanted.filter((_, at) => !reached.has(at));
      expect.soft({ unseen, missed, ended }, name).toEqual({ unseen: [], missed: [], ended: true });
    });
  }
  fleet.close();
});
