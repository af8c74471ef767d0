// Every language, with and without JavaScript: its own words and number formats, and no overflow.
import { readFileSync } from 'node:fs';

import { expect, expectAccessible, picture, test } from '../fixtures';
import { makeWorker, signIn, submit } from '../steps';

const LANGUAGES = [
  { tag: 'en', workers: 'Workers', total: '1 worker' },
  { tag: 'es', workers: 'Workers', total: '1 worker' },
  { tag: 'hi', workers: 'वर्कर', total: '1 वर्कर' },
  { tag: 'ja', workers: 'ワーカー', total: '1' },
  { tag: 'pt-BR', workers: 'Workers', total: '1 worker' },
  { tag: 'zh', workers: 'Worker', total: '1 个 Worker' },
];

for (const { tag, workers, total } of LANGUAGES) {
  test.describe(tag, () => {
    test.use({ locale: tag });

    test('pages are in the language of the browser', async ({ page, server }) => {
      await makeWorker(server, 'gpu-1');
      const job = await submit(server, 'digits');
      await signIn(page, server);
      for (const [path, width] of [['/', 1280], ['/admin/workers', 380], [`/jobs/${job}`, 380], ['/train', 1280]] as const) {
        await page.setViewportSize({ width, height: 800 });
        await page.goto(path);
        await expect(page.locator('html')).toHaveAttribute('lang', tag);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        expect(overflow, `${path} is wider than its window`).toBeLessThanOrEqual(0);
        await picture(page, `${tag}-${path.replace(job, 'one').slice(1).replaceAll('/', '-') || 'overview'}-${width}`);
      }
      await page.goto('/admin/workers');
      await expect(page.getByRole('heading', { level: 1 })).toHaveText(workers);
      await expect(page.getByText(total).last()).toBeVisible();
      await expectAccessible(page);
    });
  });
}

test('a chosen language is remembered', async ({ page, server }) => {
  await signIn(page, server);
  await page.goto('/jobs');
  await page.locator('.sidebar .account-menu > summary').click();
  await page.locator('.sidebar').getByRole('link', { name: 'Preferences' }).click();
  await page.getByLabel('Language').selectOption('ja');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.locator('html')).toHaveAttribute('lang', 'ja');
  expect(new URL(page.url()).pathname).toBe('/jobs');
  await page.goto('/admin/workers');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('ワーカー');
});

// The server's test in `app/ui/locales/plurals.rs` reads the same file.
test('server and browser use the same plural forms', async ({ page }) => {
  const expected: Record<string, Record<string, number[]>> = JSON.parse(readFileSync(`${__dirname}/../plural-forms.json`, 'utf8'));
  expect(Object.keys(expected)).toEqual(LANGUAGES.map(({ tag }) => tag));
  const numbers = [...Array(1001).keys(), 1_000_000, 1_000_001, 1_500_000, 2_000_000];
  for (const [tag, forms] of Object.entries(expected)) {
    const selected = await page.evaluate(
      ({ tag, numbers }) => numbers.map((number) => new Intl.PluralRules(tag).select(number)),
      { tag, numbers },
    );
    const expectedForms = numbers.map((number) => Object.keys(forms).find((form) => forms[form]?.includes(number)) ?? 'other');
    expect(selected, tag).toEqual(expectedForms);
  }
});
