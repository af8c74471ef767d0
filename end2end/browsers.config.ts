// Fewer tests in the browsers that are not Chromium, as a distribution ships them (see webdriver.ts).
import { defineConfig } from '@playwright/test';
import type { Engine } from './webdriver';

export default defineConfig<{ engine: Engine }>({
  testDir: 'browsers',
  outputDir: 'test-results',
  workers: 1,
  retries: 0, // a test that needs a second try has found something
  timeout: 90_000,
  forbidOnly: !!process.env.CI,
  reporter: process.env.PLAYWRIGHT_JSON_OUTPUT_FILE ? [['list'], ['json']] : 'list',
  projects: [
    { name: 'firefox', use: { engine: 'firefox' } },
    { name: 'webkit', use: { engine: 'webkit' } },
  ],
});
