// A smaller set of tests for browsers other than Chromium, in the versions of the distribution (see webdriver.ts).
import { defineConfig } from '@playwright/test';
import base from './playwright.config';
import type { Engine } from './webdriver';

const { outputDir, retries, forbidOnly, reporter } = base;

export default defineConfig<{ engine: Engine }>({
  outputDir,
  workers: 1, // each uses the display
  retries,
  forbidOnly,
  reporter,
  testDir: 'browsers',
  timeout: 90_000,
  projects: [
    { name: 'firefox', use: { engine: 'firefox' } },
    { name: 'webkit', use: { engine: 'webkit' } },
  ],
});
