// Fewer tests in the browsers that are not Chromium, as a distribution ships them (see webdriver.ts).
import { defineConfig } from '@playwright/test';
import base from './playwright.config';
import type { Engine } from './webdriver';

const { outputDir, workers, retries, forbidOnly, reporter } = base;

export default defineConfig<{ engine: Engine }>({
  outputDir,
  workers,
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
