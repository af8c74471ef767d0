// The accessibility outlines of the main pages, which are stored in outlines/ and reviewed when they change. Numbers,
// IDs and ages are removed, because they differ in each run.
import { expect, test } from '../fixtures';
import { live, signIn } from '../steps';
import { ROOT } from '../programs';
import { PAGES, demoFleet } from '../demo-fleet';

const OUTLINED = [
  'overview', 'jobs', 'running', 'waiting', 'files', 'log', 'train', 'configs', 'config', 'usage', 'workers', 'worker', 'worker-new', 'worker-edit', 'gpus', 'users', 'account', 'audit',
  'system',
];

/** Removes values that differ between runs or machines. */
function normalize(outline: string, dataDir: string): string {
  return outline
    .replaceAll(dataDir, 'DATA')
    .replaceAll(ROOT, 'ROOT')
    .replace(/\b[0-9a-f]{8,}…/g, 'HASH…')
    .replace(/\b([a-z]{1,2}_)(?:[0-9a-z]{26}|…[0-9a-z]{6})\b/g, '$1ID')
    .replace(/127\.0\.0\.1:\d+/g, 'HOST')
    .replace(/[0-9a-f]{16,}/g, 'HASH')
    .replace(/\d{1,2} [A-Z][a-z]{2} 20\d\d, [\d:]+ UTC/g, 'MOMENT')
    .replace(/(?<!level=)\d[\d,.]*/g, '#')
    .replace(/^(\s*- '?img ".*"'?): .*$/gm, '$1') // the scales of a chart depend on the time
    .replace(/(?:# (?:s|min|h|d)\b ?)+(?: ?ago)?|just now/g, 'AGE ')
    .replace(/^(\s*- group: )"?(Last # hours):.*$/gm, '$1$2') // as do the durations of a worker's states
    .replace(/\n\s*- img "\w+ · AGE · MOMENT"/g, '') // a phase of no duration has no segment in the timeline
    .replace(/(- text: .*)\n\s*- text: /g, '$1 ')
    .replace(/(- text: )AGE (?=In queue)/g, '$1')
    .replace(/^(\s*- row "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)) [–#% ]+"/gm, '$1 HOURS"') // busy hours
    .replace(/- cell "#%"/g, '- cell "–"');
}

test('the outlines of the main pages match the reviewed ones', async ({ page, server }) => {
  test.setTimeout(120_000);
  const fleet = await demoFleet(server);
  await signIn(page, server);
  for (const name of OUTLINED) {
    await test.step(name, async () => {
      await page.goto(PAGES[name]!(fleet));
      if (!(await page.locator('.is-plain').count())) await live(page);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      expect.soft(normalize(await page.getByRole('main').ariaSnapshot(), server.dataDir)).toMatchSnapshot(`${name}.txt`);
    });
  }
  fleet.close();
});
