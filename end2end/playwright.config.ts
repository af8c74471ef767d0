// Every page test runs with and without JavaScript: a server-rendered page must be complete without scripts. Tests of
// hydrated behavior only are in *.hydrate.spec.ts.
import { defineConfig, devices } from '@playwright/test';
import { existsSync } from 'node:fs';

// Use the system's browser without its background requests, and without its sandbox only as root, where it cannot work.
const quiet = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const system = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync);
const root = process.getuid?.() === 0;

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  snapshotPathTemplate: '{testDir}/outlines/{arg}{ext}',
  workers: 2, // each test has its own server and mostly waits for the browser
  retries: 0, // a flaky test is a failure
  timeout: 30_000,
  forbidOnly: !!process.env.CI,
  // `scripts/test` sets the file and reads the results from it.
  reporter: process.env.PLAYWRIGHT_JSON_OUTPUT_FILE ? [['list'], ['json']] : 'list',
  use: {
    ...devices['Desktop Chrome'],
    locale: 'en-US',
    timezoneId: 'UTC',
    trace: 'off', // recording takes longer than the tests; use `--trace on` for a failing one
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? system, // undefined: the browser that Playwright has installed
      args: root ? ['--no-sandbox', ...quiet] : quiet,
    },
  },
  projects: [
    { name: 'hydrated' },
    { name: 'no-js', use: { javaScriptEnabled: false }, testIgnore: '**/*.hydrate.spec.ts' },
  ],
});
