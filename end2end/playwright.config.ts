// Every page test runs twice, with and without JavaScript: a page that the server rendered must already be complete.
// Tests of what only the hydrated page does are in *.hydrate.spec.ts.
import { defineConfig, devices } from '@playwright/test';
import { existsSync } from 'node:fs';

// The browser of the system, never calling home, and without its sandbox only where that cannot work: as root.
const quiet = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const system = existsSync('/usr/bin/chromium') ? '/usr/bin/chromium' : undefined;
const root = process.getuid?.() === 0;

// How far a page moves while it loads depends on what else the machine does.
const ALONE = '**/matrix.spec.ts';

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  snapshotPathTemplate: '{testDir}/outlines/{arg}{ext}',
  workers: 2, // each test has a server of its own and mostly waits for the browser
  retries: 0, // a test that needs a second try has found something
  timeout: 30_000,
  forbidOnly: !!process.env.CI,
  // `scripts/test` names a file and reads the counts from it.
  reporter: process.env.PLAYWRIGHT_JSON_OUTPUT_FILE ? [['list'], ['json']] : 'list',
  use: {
    ...devices['Desktop Chrome'],
    locale: 'en-US',
    timezoneId: 'UTC',
    trace: 'off', // what is recorded of each step takes longer than the steps: `--trace on` for the one that failed
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? system, // none: the one Playwright has installed
      args: root ? ['--no-sandbox', ...quiet] : quiet,
    },
  },
  projects: [
    { name: 'hydrated', testIgnore: ALONE },
    { name: 'no-js', use: { javaScriptEnabled: false }, testIgnore: ['**/*.hydrate.spec.ts', ALONE] },
    { name: 'hydrated-alone', testMatch: ALONE, workers: 1, dependencies: ['hydrated', 'no-js'] },
    { name: 'no-js-alone', testMatch: ALONE, workers: 1, dependencies: ['hydrated-alone'], use: { javaScriptEnabled: false } },
  ],
});
