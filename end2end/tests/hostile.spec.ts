// Untrusted input is shown as text: markup, script addresses, characters that change the text direction.
import { expect, test } from '../fixtures';
import { Host } from '../host';
import { live, signIn, submit } from '../steps';

const MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>';
const ADDRESS = 'javascript:window.ran=1';
const TURNED = 'report\u202Efdp.exe';
const ESCAPES = '\u001b]8;;javascript:window.ran=1\u0007click\u001b]8;;\u0007 \u001b[31mred\u001b[0m \u0007\u0008\u009b2J';

test('markup, URLs and control characters in names, labels, logs and errors are escaped', async ({ page, server }) => {
  test.setTimeout(120_000);
  const name = '<b onclick=alert(1)>gpu';
  const host = await Host.connect(server, name, { model: MARKUP, labels: { note: '"><svg onload=alert(1)>', link: ADDRESS }, version: MARKUP });
  const job = await submit(server, 'digits');
  const offer = await host.run();
  await host.log(offer, `${MARKUP}\n${ADDRESS}\n${TURNED}\n${ESCAPES}\n`);
  await host.progress(offer, [{ step: 1, total_steps: 10, at: new Date().toISOString(), loss: 1, stage: MARKUP, metrics: { [MARKUP.slice(0, 40)]: 1, [ADDRESS]: 2 } }]);
  await host.sendReadings([{ uuid: host.gpus[0], unavailable: { reason: 'quarantined', detail: `${MARKUP} ${TURNED}` } }]);
  await host.file(offer, 'out/<i>x</i>.txt', 'other', Buffer.from(MARKUP));
  await host.report(offer, 'failed', { error: `${MARKUP} ${ADDRESS} ${TURNED}`, exit_code: 1 });
  await signIn(page, server);
  const paths = ['/', '/jobs', `/jobs/${job}`, `/jobs/${job}?show=files`, `/jobs/${job}/events`, '/admin/workers', `/admin/workers/${host.id}`, '/fleet/gpus', '/train',
    `/admin/workers/${host.id}?show=gpus`, `/admin/workers/${host.id}/jobs`, `/admin/workers/${host.id}/events`, '/usage?by=worker', '/usage?by=label',
    '/admin/audit', `/admin/audit?target=${encodeURIComponent(MARKUP)}`, '/admin/users', '/account', `/jobs/${job}/log`, `/jobs/compare?id=${job}&id=${encodeURIComponent(MARKUP)}`, `/jobs/logs?q=${encodeURIComponent(MARKUP)}&jobs=${encodeURIComponent(MARKUP)}`, `/search?q=${encodeURIComponent(MARKUP)}`, '/search?q=gpu'];
  page.on('dialog', (dialog) => { throw new Error(`a dialog: ${dialog.message()}`); });
  for (const path of paths) {
    await page.goto(path);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    const found = await page.evaluate(() => ({
      ran: 'ran' in window,
      handlers: document.querySelectorAll('[onclick], [onerror], [onload], b, svg[onload]').length,
      addresses: [...document.querySelectorAll('[href], [src], [action]')].filter((element) =>
        ['href', 'src', 'action'].some((key) => /^\s*(javascript|data|vbscript):/i.test(element.getAttribute(key) ?? ''))).length,
      raw: /[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u009f]/.test(document.body.innerText),
      turned: [...document.querySelectorAll('body *')].some((element) => element.children.length === 0
        && !element.closest('template, script') && /[\u202A-\u202E\u2066-\u2069]/.test(element.textContent ?? '')),
    })).catch((error: Error) => error.message);
    expect.soft(found, path).toEqual({ ran: false, handlers: 0, addresses: 0, raw: false, turned: false });
  }
  await page.goto('/jobs');
  if (test.info().project.use.javaScriptEnabled ?? true) {
    await live(page);
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').fill('gpu');
    await expect(page.getByRole('option').filter({ hasText: name })).toBeVisible();
    expect(await page.evaluate(() => 'ran' in window || document.querySelectorAll('[onclick], [onerror]').length > 0)).toBe(false);
  }
  await page.goto(`/jobs/${job}`);
  await expect(page.getByText('<script>window.ran=1</script>').first()).toBeVisible();
  host.close();
});
