// `make demo`: not a test, but it uses the same server, hosts and programs as the page tests.
import { defineConfig } from '@playwright/test';

export default defineConfig({ testDir: '.', outputDir: '../test-results', workers: 1, timeout: 0, reporter: 'line' });
