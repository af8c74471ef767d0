// `test` with a separate server for each test, agents on demand, and a check that pages log no errors.
import AxeBuilder from '@axe-core/playwright';
import { expect, test as base, type BrowserContext, type Page } from '@playwright/test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DIST, freePort, Program, ROOT } from './programs';

export { expect };

export interface Server {
  url: string;
  adminToken: string;
  dataDir: string;
  program: Program;
  /** Stops the server as an operator would, and restarts it with the same data and port. */
  restart(): Promise<void>;
  /** Kills the server at an arbitrary moment, and restarts it. */
  crash(): Promise<void>;
  /** Sends an API request as admin; `path` starts with `/`. */
  api(path: string, init?: RequestInit): Promise<Response>;
}

export interface AgentOptions {
  token: string;
  name?: string;
  args?: string[];
  env?: Record<string, string>;
}

interface Fixtures {
  /** Whether the server has an admin at the start of a test. */
  claimed: boolean;
  server: Server;
  /** Starts an agent of `server` on this host with the example trainer; it is stopped at the end of the test. */
  agent(options: AgentOptions): Program;
  /** Runs a command from a page in a shell with dist/ in its path; it is stopped at the end of the test. */
  shell(command: string): Program;
  /**
   * Errors, warnings and hydration messages of all pages so far. Any that remain at the end fail
   * the test; remove expected ones.
   */
  consoleErrors: string[];
}

async function startServer(dataDir: string, claimed: boolean): Promise<Server> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const adminToken = `st_${'end2end'.repeat(6)}`;
  const args = ['server', '--host', '127.0.0.1', '--port', `${port}`, '--data-dir', dataDir, '--configs-dir', join(ROOT, 'examples/configs')];
  const env = { SIMPLETUNER_LOCAL: 'off', ...(claimed && { SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN: adminToken }) };
  const start = async () => {
    const program = new Program('server', 'simpletuner', args, env, join(dataDir, 'server.log'));
    await program.until('ready', () => fetch(`${url}/readyz`).then((response) => response.ok, () => false));
    return program;
  };
  const api = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${adminToken}`);
    if (typeof init.body === 'string') headers.set('content-type', 'application/json');
    return fetch(url + path, { ...init, headers });
  };
  const server: Server = {
    url,
    adminToken,
    dataDir,
    program: await start(),
    api,
    async restart() {
      await server.program.stop();
      server.program = await start();
    },
    async crash() {
      server.program.signal('SIGKILL');
      await server.program.end(5_000);
      server.program = await start();
    },
  };
  return server;
}

function listen(context: BrowserContext, consoleErrors: string[], scripts: boolean): void {
  context.on('weberror', (error) => consoleErrors.push(`uncaught: ${error.error().message}`));
  context.on('console', (message) => {
    const text = `${message.type()}: ${message.text()}`;
    // Without scripts, preloaded files remain unused.
    if (!scripts && text.includes('was preloaded using link preload')) return;
    if (['error', 'warning'].includes(message.type()) || /hydration/i.test(text)) consoleErrors.push(text.startsWith('error: Failed to load') ? `${text} ${message.location().url.replace(/^\w+:\/\/[^/]*/, '')}` : text);
  });
}

/** Removes messages of the browser that match the pattern, because a test expects them. */
export function removeExpected(consoleErrors: string[], pattern: RegExp): void {
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !pattern.test(line)));
}

/** Removes the messages of pages that checked their session after signing out. */
export function removeExpectedSignOut(consoleErrors: string[]): void {
  removeExpected(consoleErrors, /status of 401 .* \/api\/session$/);
}

export const test = base.extend<Fixtures>({
  claimed: [true, { option: true }],

  server: async ({ claimed }, use) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'simpletuner-end2end-'));
    try {
      const server = await startServer(dataDir, claimed);
      await use(server);
      await server.program.stop();
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  },

  baseURL: async ({ server }, use) => use(server.url),

  agent: async ({ server }, use) => {
    const started: Program[] = [];
    await use(({ token, name = `agent-${started.length + 1}`, args = [], env = {} }) => {
      const log = join(server.dataDir, `${name}.log`);
      const program = new Program(name, 'simpletuner-worker', args, {
        SIMPLETUNER_ORCHESTRATOR_URL: server.url,
        SIMPLETUNER_WORKER_TOKEN: token,
        SIMPLETUNER_WORKER_NAME: name,
        SIMPLETUNER_WORK_DIR: join(server.dataDir, name),
        SIMPLETUNER_KEEP_FREE: '0', // independent of free disk space on this host
        PYTHONPATH: join(ROOT, 'examples/trainer'),
        ...env,
      }, log);
      started.push(program);
      return program;
    });
    for (const program of started.reverse()) await program.stop();
  },

  shell: async ({ server }, use) => {
    const started: Program[] = [];
    await use((command) => {
      const env = {
        PATH: `${DIST}:${process.env.PATH}`,
        PYTHONPATH: join(ROOT, 'examples/trainer'),
        SIMPLETUNER_WORK_DIR: join(server.dataDir, `shell-${started.length}`),
        SIMPLETUNER_KEEP_FREE: '0',
      };
      // With `exec`, stopping the child stops the program itself, not only the shell around it.
      const program = new Program('shell', '/bin/bash', ['-c', command.replace(/(?<= |^)simpletuner /, 'exec simpletuner ')], env, join(server.dataDir, 'shell.log'));
      started.push(program);
      return program;
    });
    for (const program of started.reverse()) await program.stop();
  },

  consoleErrors: async ({}, use) => use([]),

  context: async ({ context, consoleErrors, javaScriptEnabled }, use) => {
    listen(context, consoleErrors, javaScriptEnabled ?? true);
    await use(context);
    expect(consoleErrors, 'no console errors').toEqual([]);
  },
});

const copies = new WeakMap<BrowserContext, Page>();

/** Returns a page with scripts for axe, in another context that closes together with `context`. */
async function copyPage(context: BrowserContext): Promise<Page> {
  const existing = copies.get(context);
  if (existing) return existing;
  const copyContext = await context.browser()!.newContext({ javaScriptEnabled: true });
  context.once('close', () => void copyContext.close());
  const page = await copyContext.newPage();
  copies.set(context, page);
  return page;
}

/** Copies a page without its scripts to where axe can run, because axe needs JavaScript. */
async function copyForAxe(page: Page): Promise<Page> {
  const [url = ''] = page.url().split('#');
  const html = (await page.content()).replace(/<script\b[\s\S]*?<\/script>|<\/?noscript\b[^>]*>/gi, '');
  const copy = await copyPage(page.context());
  await copy.context().addCookies(await page.context().cookies());
  await copy.setViewportSize(page.viewportSize()!);
  // Routes are never removed, and the newest one has precedence: removing a route would leave
  // current requests without a response.
  await copy.route(url, (route) => route.fulfill({ body: html, contentType: 'text/html; charset=utf-8' }));
  await copy.goto(url);
  return copy;
}

/** Expects that axe finds no violation of WCAG 2.2 AA, and of these other rules. */
export async function expectAccessible(page: Page, others: string[] = []): Promise<void> {
  const scripts = test.info().project.use.javaScriptEnabled ?? true;
  const checkedPage = scripts ? page : await copyForAxe(page);
  // During a transition between themes colors are a mixture of both, and transitions never finish
  // in a page that is not painted.
  await checkedPage.evaluate(() => {
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
  });
  const { violations } = await new AxeBuilder({ page: checkedPage })
    .options({
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
      rules: Object.fromEntries(others.map((rule) => [rule, { enabled: true }])),
      resultTypes: ['violations'],
      preload: false,
    })
    .setLegacyMode() // there are no frames, so another page to combine their results is unnecessary
    .analyze();
  const found = violations.map(({ id, help, nodes }) => `${id}: ${help}\n${nodes.map((node) => `  ${node.html}`).join('\n')}`);
  expect.soft(found, 'the page must be accessible').toEqual([]);
}

/** Saves a full-page screenshot in end2end/screenshots/<project> for visual review, if SIMPLETUNER_SCREENSHOTS is set. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!process.env.SIMPLETUNER_SCREENSHOTS) return;
  await page.screenshot({ path: join(__dirname, 'screenshots', test.info().project.name, `${name}.png`), fullPage: true });
}
