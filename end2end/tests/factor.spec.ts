// Second factors and account notices, with and without JavaScript.
import { createHmac } from 'node:crypto';
import { expect, expectAccessible, picture, test } from '../fixtures';
import { PASSWORD, signInAs } from '../steps';

/** Returns the code of an authenticator app (RFC 6238), `steps` time steps from now. */
function code(secret: string, steps = 0): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = [...secret.replaceAll(' ', '')].map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const digest = createHmac('sha1', key).update(counter).digest();
  const number = digest.readUInt32BE(digest[19]! & 15) & 0x7fff_ffff;
  return `${number % 1_000_000}`.padStart(6, '0');
}

test('an authenticator app is set up, required at the next sign-in, and removed', async ({ page, server, browser }) => {
  test.setTimeout(60_000);
  await signInAs(page, server, 'ada', 'viewer');
  await page.goto('/account');
  await expect(page.getByText('a stolen password is not enough')).toBeVisible();
  await page.getByRole('button', { name: 'Set up authenticator app' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Set up authenticator app');
  await expect(page.getByRole('img', { name: 'QR code' })).toBeVisible();
  await expectAccessible(page);
  await picture(page, 'totp');
  const secret = await page.locator('pre', { hasText: /^[A-Z2-7 ]+$/ }).innerText();
  await page.getByLabel('Code', { exact: true }).fill('000000');
  await page.getByRole('button', { name: 'Turn on' }).click();
  await expect(page.getByText('This code is not valid')).toBeVisible();
  // Uses the previous code, because each code is valid once and the current one is for the sign-in.
  await page.getByLabel('Code', { exact: true }).fill(code(secret, -1));
  await page.getByRole('button', { name: 'Turn on' }).click();
  const recovery = (await page.locator('pre', { hasText: /-/ }).innerText()).trim().split('\n');
  expect(recovery).toHaveLength(10);
  await expect(page.getByText('10 recovery codes left')).toBeVisible();
  await expectAccessible(page);
  await page.reload();
  await expect(page.getByText(recovery[0]!)).toHaveCount(0);

  const otherContext = await browser.newContext({ javaScriptEnabled: test.info().project.use.javaScriptEnabled ?? true });
  const otherPage = await otherContext.newPage();
  const enterPassword = async () => {
    await otherPage.goto(`${server.url}/login?next=/jobs`);
    await otherPage.getByLabel('Name').fill('ada');
    await otherPage.getByLabel('Password').fill(PASSWORD);
    await otherPage.getByRole('button', { name: 'Sign in' }).click();
    await expect(otherPage.getByRole('heading', { level: 1 })).toHaveText('Enter code');
  };
  await enterPassword();
  await expectAccessible(otherPage);
  await otherPage.getByLabel('Code').fill('000000');
  await otherPage.getByRole('button', { name: 'Sign in' }).click();
  await expect(otherPage.getByText('This code is not valid')).toBeVisible();
  await otherPage.getByLabel('Code').fill(code(secret, 1));
  await otherPage.getByRole('button', { name: 'Sign in' }).click();
  await expect(otherPage).toHaveURL(`${server.url}/jobs`);
  await otherContext.clearCookies();
  await enterPassword();
  await otherPage.getByLabel('Code').fill(recovery[0]!);
  await otherPage.getByRole('button', { name: 'Sign in' }).click();
  await expect(otherPage).toHaveURL(`${server.url}/jobs`);
  await otherContext.close();

  await page.goto('/account');
  await expect(page.getByText('9 recovery codes left')).toBeVisible();
  await page.locator('summary', { hasText: 'Remove' }).click();
  await page.getByRole('button', { name: 'Remove second factor' }).click();
  await expect(page.getByRole('main').getByText('Second factor removed.')).toBeVisible();
});

test('every page shows a sign-in from a new browser, and the account page ends its session', async ({ page, server, browser }) => {
  await signInAs(page, server, 'ada', 'viewer');
  const otherContext = await browser.newContext({ javaScriptEnabled: false, userAgent: 'Strange/1' });
  const otherPage = await otherContext.newPage();
  await otherPage.goto(`${server.url}/login`);
  await otherPage.getByLabel('Name').fill('ada');
  await otherPage.getByLabel('Password').fill(PASSWORD);
  await otherPage.getByRole('button', { name: 'Sign in' }).click();
  await expect(otherPage).toHaveURL(`${server.url}/`);

  await page.goto('/jobs');
  await page.getByRole('link', { name: 'Check your account activity' }).click();
  const activity = page.getByRole('region', { name: 'Account activity' });
  await expect(activity).toContainText('Signed in with a new browser');
  await expect(activity).toContainText('Strange/1');
  await expectAccessible(page);
  await picture(page, 'account-activity');
  await activity.locator('summary', { hasText: 'Not me' }).click();
  await activity.getByRole('button', { name: 'End this session' }).click();
  await otherPage.goto(`${server.url}/jobs`);
  await expect(otherPage).toHaveURL(/\/login/);
  await page.goto('/account');
  await page.getByRole('button', { name: 'Mark as read' }).click();
  await expect(activity).toHaveCount(0);
  await page.goto('/jobs');
  await expect(page.getByRole('link', { name: 'Check your account activity' })).toHaveCount(0);
  await otherContext.close();
});
