// Passkeys: added, used to sign in, and removed with the browser's virtual authenticator; and without JavaScript.
import type { CDPSession, Page } from '@playwright/test';
import { expect, expectAccessible, picture, removeExpectedSignOut, test, type Server } from '../fixtures';
import { PASSWORD } from '../steps';

/** The server's address with a host name, because passkeys are bound to one. */
const localhostUrl = (server: Server): string => server.url.replace('127.0.0.1', 'localhost');

/** Adds a virtual authenticator that confirms every request. */
async function addAuthenticator(page: Page): Promise<{ cdp: CDPSession; authenticatorId: string }> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const options = { protocol: 'ctap2', transport: 'usb', hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } as const;
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', { options });
  return { cdp, authenticatorId };
}

async function enterPassword(page: Page, server: Server): Promise<void> {
  await page.goto(`${localhostUrl(server)}/login?next=/jobs`);
  await page.getByLabel('Name').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function signOut(page: Page, consoleErrors: string[]): Promise<void> {
  await page.locator('.sidebar .account-menu > summary').click();
  await page.locator('form[action="/ui/logout"] button:visible').first().click();
  await expect(page).toHaveURL(/\/login/);
  removeExpectedSignOut(consoleErrors);
}

/** Tests the same page on a phone in the dark theme. */
async function checkOnPhone(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()!;
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await expectAccessible(page);
  await picture(page, `${name}-phone`);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(size);
}

async function addUser(server: Server): Promise<void> {
  const body = JSON.stringify({ name: 'ada', role: 'viewer', password: PASSWORD });
  expect((await server.api('/api/admin/users', { method: 'POST', body })).status).toBe(201);
}

test('a passkey is added, required at the next sign-in, and removed', async ({ page, server, javaScriptEnabled, consoleErrors }) => {
  test.skip(!javaScriptEnabled, 'passkeys need JavaScript; the next test covers pages without it');
  test.setTimeout(60_000);
  await addUser(server);
  const { cdp, authenticatorId } = await addAuthenticator(page);
  const message = page.locator('[data-passkey-said]');
  await enterPassword(page, server);
  await page.goto(`${localhostUrl(server)}/account`);
  await page.getByRole('button', { name: 'Add passkey' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Add passkey');
  await expectAccessible(page);
  await picture(page, 'passkey-new');
  await checkOnPhone(page, 'passkey-new');
  await page.getByLabel('Name').fill('Work laptop');
  await page.getByRole('button', { name: 'Create passkey' }).click();
  await expect(page).toHaveURL(`${localhostUrl(server)}/account`);
  const recovery = (await page.locator('pre', { hasText: /-/ }).innerText()).trim().split('\n');
  expect(recovery).toHaveLength(10);
  const factor = page.getByRole('region', { name: 'Second factor' });
  await expect(factor).toContainText('Work laptop');
  await expectAccessible(page);
  await picture(page, 'passkeys');
  await checkOnPhone(page, 'passkeys');

  // The browser recognizes a passkey that is already registered.
  await page.getByRole('button', { name: 'Add passkey' }).click();
  await page.getByLabel('Name').fill('Again');
  await page.getByRole('button', { name: 'Create passkey' }).click();
  await expect(message).toHaveText('This passkey is set up already.');

  await signOut(page, consoleErrors);
  await enterPassword(page, server);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Second factor');
  await expectAccessible(page);
  await picture(page, 'login-passkey');
  await checkOnPhone(page, 'login-passkey');
  // The user does not confirm, or uses another passkey.
  await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await expect(message).toContainText('No passkey was used');
  await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await expect(page).toHaveURL(`${localhostUrl(server)}/jobs`);

  await signOut(page, consoleErrors);
  await enterPassword(page, server);
  await page.getByLabel('Code').fill(recovery[0]!);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await expect(page).toHaveURL(`${localhostUrl(server)}/jobs`);

  await page.goto(`${localhostUrl(server)}/account`);
  await expect(factor).toContainText('9 recovery codes left');
  await factor.locator('summary', { hasText: 'Remove' }).click();
  await factor.getByRole('button', { name: 'Remove second factor' }).click();
  await expect(page.getByRole('main').getByText('Second factor removed.')).toBeVisible();
  await signOut(page, consoleErrors);
  await enterPassword(page, server);
  await expect(page).toHaveURL(`${localhostUrl(server)}/jobs`);
});

test('pages say so if passkeys are unavailable', async ({ page, server, javaScriptEnabled }) => {
  await addUser(server);
  await page.goto(`${server.url}/login?next=/account`);
  await page.getByLabel('Name').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByText('Passkeys need a host name in the address')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Add passkey' })).toHaveCount(0);
  await expectAccessible(page);

  await enterPassword(page, server);
  await page.goto(`${localhostUrl(server)}/account`);
  if (javaScriptEnabled) await page.addInitScript('delete window.PublicKeyCredential');
  await page.getByRole('button', { name: 'Add passkey' }).click();
  const reason = javaScriptEnabled ? 'This browser does not support passkeys.' : 'Passkeys need JavaScript, which is off in this browser.';
  await expect(page.getByText(reason)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Create passkey' })).toBeHidden();
  await expectAccessible(page);
});
