// All pages open, hydrate without errors and accept forms in browsers other than Chromium.
import { expect, test as base } from '../fixtures';
import { makeWorker, submit } from '../steps';
import { PAGES, demoFleet } from '../demo-fleet';
import { Browser, type Engine } from '../webdriver';

const LAST_MESSAGE = 'the last message';

const test = base.extend<{ engine: Engine; otherBrowser: Browser }>({
  engine: ['firefox', { option: true }],
  otherBrowser: async ({ engine }, use) => {
    const browser = await Browser.start(engine);
    try {
      await use(browser);
      await expectNoConsoleErrors(browser);
    } finally {
      await browser.stop();
    }
  },
});

/** Expects no console errors: logs a last message and waits for it, so that no earlier one is missed. */
async function expectNoConsoleErrors(browser: Browser): Promise<void> {
  if (browser.consoleErrors() === undefined) return;
  await browser.run(`console.error(${JSON.stringify(LAST_MESSAGE)})`);
  await expect.poll(() => browser.consoleErrors()?.some((line) => line.includes(LAST_MESSAGE))).toBe(true);
  const others = browser.consoleErrors()?.filter((line) => !line.includes(LAST_MESSAGE));
  expect.soft(others, 'no console errors').toEqual([]);
}

const VISIBLE = 'return [...document.querySelectorAll(arguments[0])].some((element) => element.checkVisibility())';

/** Waits until an element that matches the selector is visible. */
async function waitForElement(browser: Browser, selector: string): Promise<void> {
  await expect.poll(() => browser.run<boolean>(VISIBLE, selector), { message: `${selector} must be visible`, timeout: 40_000 }).toBe(true);
}

/** Waits until the page contains a text. */
async function waitForText(browser: Browser, text: string): Promise<void> {
  await expect.poll(() => browser.run<string>('return document.querySelector("main").innerText'), { timeout: 20_000 }).toContain(text);
}

async function signIn(browser: Browser, url: string, token: string): Promise<void> {
  await browser.goto(`${url}/login`);
  await browser.type('form[action="/ui/login"] [name=password]', token);
  await browser.click('form[action="/ui/login"] button');
  await expect.poll(() => browser.run<string>('return location.pathname')).toBe('/');
  await waitForElement(browser, '.is-live'); // leaving a page while it loads logs errors
}

test('every page loads and hydrates', async ({ otherBrowser: browser, server }) => {
  const fleet = await demoFleet(server);
  await signIn(browser, server.url, server.adminToken);
  for (const [name, path] of Object.entries(PAGES)) {
    await test.step(name, async () => {
      await browser.goto(server.url + path(fleet));
      await expect.poll(() => browser.run<string>('return location.pathname + location.search'), { timeout: 20_000 }).toBe(path(fleet));
      await waitForElement(browser, 'h1');
      await waitForElement(browser, '.is-live, .is-plain');
      // WebKit reports a load that the next navigation interrupts as an error of that navigation.
      await expect.poll(() => browser.run<string>('return document.readyState')).toBe('complete');
    });
  }
  fleet.close();
});

test('lists update without a reload', async ({ otherBrowser: browser, server }) => {
  await signIn(browser, server.url, server.adminToken);
  await browser.goto(`${server.url}/admin/workers`);
  await waitForElement(browser, '.is-live');
  await browser.run('window.stayed = true');
  await makeWorker(server, 'came-later');
  await waitForText(browser, 'came-later');
  await server.restart();
  await makeWorker(server, 'after-the-restart');
  await waitForText(browser, 'after-the-restart');
  expect(await browser.run('return window.stayed')).toBe(true);
});

test('forms can be submitted', async ({ otherBrowser: browser, server }) => {
  await signIn(browser, server.url, server.adminToken);
  await browser.goto(`${server.url}/admin/workers/new`);
  await waitForElement(browser, '.is-live, .is-plain');
  await browser.type('main form [name=name]', 'by-the-form');
  await browser.click('main form button');
  await waitForText(browser, 'by-the-form');
  const job = await submit(server, 'digits');
  await browser.goto(`${server.url}/jobs/${job}/cancel`);
  await waitForElement(browser, '.is-live, .is-plain');
  await browser.click('main form button');
  await expect.poll(() => server.api(`/api/queue/${job}`).then((response) => response.json()).then(({ status }) => status)).toBe('cancelled');
});
