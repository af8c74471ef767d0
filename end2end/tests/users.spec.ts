// Users and what they can access, with and without JavaScript.
import { expect, expectAccessible, picture, removeExpectedSignOut, test } from '../fixtures';
import { PASSWORD, signInAs, submit } from '../steps';

test.describe('a server without users', () => {
  test.use({ claimed: false });

  test('the setup code creates the first admin, who then signs in with a password', async ({ page, server, consoleErrors }) => {
    const [, address, code] = /(http\S+\/login\?setup=(\S+))/.exec(server.program.log()) ?? ['', '', ''];
    expect(code).toMatch(/^\w{4}(-\w{4}){3}$/);
    await page.goto('/jobs');
    await expect(page.getByLabel('Setup code')).toHaveValue('');
    await page.goto(address);
    await expect(page.getByLabel('Setup code')).toHaveValue(code);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Create admin account');
    await expectAccessible(page);
    await picture(page, 'setup');
    await page.getByLabel('Setup code').fill('AAAA-BBBB-CCCC-DDDD');
    await page.getByLabel('Name').fill('ada');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();
    await expect(page.getByText('Invalid token or code')).toBeVisible();
    await expect(page.getByLabel('Name')).toHaveValue('ada');
    await page.getByLabel('Setup code').fill(code);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');

    await page.locator('.sidebar .account-menu > summary').click();
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Sign in');
    removeExpectedSignOut(consoleErrors);
    await page.getByLabel('Name').fill('ada');
    await page.getByLabel('Password').fill('not-the-password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(page.getByText('Incorrect user name or password')).toBeVisible();
    await picture(page, 'sign-in-rejected');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');
  });
});

test('a researcher sees all jobs and workers, cancels only their own jobs, and sees no administration', async ({ page, server, consoleErrors }) => {
  const othersJob = await submit(server, 'digits');
  await signInAs(page, server, 'eve', 'researcher');
  await expect(page.getByRole('link', { name: 'Fleet' }).first()).toBeVisible();
  await expect(page.getByText('Administration')).toHaveCount(0);
  await expect(page.getByText('digits').first()).toBeVisible();
  await picture(page, 'researcher');
  await expectAccessible(page);
  await page.goto('/train');
  await page.getByRole('button', { name: 'Submit job' }).click();
  await expect(page.locator('#content').getByText('by eve')).toBeVisible();
  await page.goto(`/jobs/${othersJob}`);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('digits');
  await expect(page.getByText('Cancel job')).toHaveCount(0);
  await page.goto('/admin/workers');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Workers');
  await expect(page.getByText('Create worker')).toHaveCount(0);
  await page.goto('/admin/workers/new');
  await expect(page.getByText('Access denied')).toBeVisible();
  await expect(page.getByText('admin.workers')).toBeVisible();
  // The browser logs these responses itself.
  consoleErrors.splice(0, consoleErrors.length, ...consoleErrors.filter((line) => !/status of 40[34]/.test(line)));
});

test('a token is created, shown once, used and revoked', async ({ page, server }) => {
  await signInAs(page, server, 'ada', 'researcher');
  await page.goto('/account');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('ada');
  await expectAccessible(page);
  await page.getByLabel('Token name').fill('Not a name');
  await page.getByRole('button', { name: 'Create token' }).click();
  await expect(page.getByText('lower-case letters').first()).toBeVisible();
  await page.getByLabel('Token name').fill('ci');
  await page.getByLabel('job.submit').check();
  await page.getByRole('button', { name: 'Create token' }).click();
  const secret = await page.locator('pre', { hasText: 'st_' }).innerText();
  await picture(page, 'account');
  const get = (path: string) => fetch(server.url + path, { headers: { authorization: `Bearer ${secret}` } });
  expect((await get('/api/session')).status).toBe(200);
  expect((await get('/api/queue')).status).toBe(403);
  await page.reload();
  await expect(page.getByText(/st_\w{20}/)).toHaveCount(0);
  await page.getByLabel('Revoke: ci').click();
  await expect(page.getByText('This cannot be undone')).toBeVisible();
  await expectAccessible(page);
  await picture(page, 'account-revoke');
  expect((await get('/api/session')).status).toBe(200);
  await page.getByRole('button', { name: 'Revoke token' }).click();
  await expect(page.getByRole('main').getByText('Token revoked.', { exact: true })).toBeVisible();
  expect((await get('/api/session')).status).toBe(401);
});

test('a password change requires the current password', async ({ page, server }) => {
  await signInAs(page, server, 'ada', 'viewer');
  await page.goto('/account');
  const change = async (currentPassword: string, newPassword: string) => {
    await page.getByLabel('Current password').fill(currentPassword);
    await page.getByLabel('New password').fill(newPassword);
    await page.getByRole('button', { name: 'Change password' }).click();
  };
  await change('not-the-password', 'another-good-one');
  await expect(page.getByText('Incorrect user name or password')).toBeVisible();
  await change(PASSWORD, 'another-good-one');
  await expect(page.getByRole('main').getByText('Password changed. Your other sessions have ended.')).toBeVisible();
});

test('a viewer sees every job and can cancel none', async ({ page, server }) => {
  const job = await submit(server, 'digits');
  await signInAs(page, server, 'vic', 'viewer');
  await expect(page.getByRole('link', { name: 'Train in Cloud' })).toHaveCount(0);
  await page.goto(`/jobs/${job}`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('digits #1');
  await expect(page.getByText('Cancel job')).toHaveCount(0);
});

test('an admin adds a user, changes their role, and disables them', async ({ page, server }) => {
  test.setTimeout(60_000);
  await signInAs(page, server, 'boss', 'admin');
  await page.getByRole('link', { name: 'Users' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Users');
  await expectAccessible(page);
  await page.getByLabel('Name').fill('eve');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Add user' }).click();
  const eve = page.getByRole('row', { name: /^eve / });
  await expect(eve).toContainText('Never used');
  await expect(page.getByRole('row', { name: /^boss / })).not.toContainText('Never used');
  await picture(page, 'users');
  await page.getByRole('navigation', { name: 'Role' }).getByRole('link', { name: /^researcher/ }).click();
  await expect(page).toHaveURL(/role=researcher$/);
  await expect(page.getByRole('row', { name: /^boss / })).toHaveCount(0);
  await page.getByRole('searchbox').fill('nobody');
  await page.getByRole('searchbox').press('Enter');
  await expect(page.getByText('No matching users')).toBeVisible();
  await page.getByRole('link', { name: 'Clear filter' }).click();
  await page.getByRole('link', { name: 'eve' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('eve');
  await expectAccessible(page);
  await page.getByLabel('Role').selectOption('lead');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('main').getByText('Changes saved.')).toBeVisible();
  await expect(page.getByLabel('Role')).toHaveValue('lead');
  // Setting a password and disabling the user both ask for confirmation.
  await page.locator('summary', { hasText: 'Set password' }).click();
  await expect(page.getByText('their API tokens are revoked')).toBeVisible();
  await picture(page, 'user-password');
  await expectAccessible(page);
  await page.getByRole('textbox', { name: 'New password' }).fill('another-good-one');
  await page.getByRole('button', { name: 'Set this password' }).click();
  await expect(page.locator('.notice').first()).toBeVisible();
  await page.setViewportSize({ width: 380, height: 800 });
  await page.locator('summary', { hasText: 'Disable' }).click();
  await expect(page.getByText('Their jobs keep running.')).toBeVisible();
  await picture(page, 'user-380');
  expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(380);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('button', { name: 'Disable user' }).click();
  await expect(page.getByText('disabled', { exact: true })).toBeVisible();
  await expect(page.getByLabel('Role')).toHaveValue('lead');
  await picture(page, 'user');
  await page.getByRole('button', { name: 'Enable' }).click();
  await expect(page.locator('summary', { hasText: 'Disable' })).toBeVisible();
  await page.getByRole('link', { name: 'Overview' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');
});

test('a secret is stored, never shown, and deleted', async ({ page, server }) => {
  await signInAs(page, server, 'ada', 'researcher');
  await page.locator('.sidebar .account-menu > summary').click();
  await page.getByRole('link', { name: 'Secrets' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Secrets');
  await expectAccessible(page);
  await page.getByLabel('Name').fill('path');
  await page.getByLabel('Value').fill('hf_0123456789');
  await page.getByRole('button', { name: 'Save secret' }).click();
  await expect(page.getByText('is no name of a secret')).toBeVisible();
  await expect(page.getByLabel('Name')).toHaveValue('path');
  await page.getByLabel('Name').fill('hf_token');
  await page.getByLabel('Value').fill('hf_0123456789');
  await page.getByRole('button', { name: 'Save secret' }).click();
  await expect(page.getByRole('main').getByText('Secret saved.')).toBeVisible();
  await picture(page, 'secrets');
  expect(await page.content()).not.toContain('hf_0123456789');
  await page.getByLabel('Delete: HF_TOKEN').click();
  await expect(page.getByText('deleted permanently')).toBeVisible();
  await page.getByRole('button', { name: 'Delete secret' }).click();
  await expect(page.getByRole('main').getByText('Secret deleted.')).toBeVisible();
});

test('another browser is signed out after confirmation', async ({ page, server, browser }) => {
  await signInAs(page, server, 'ada', 'viewer');
  const otherContext = await browser.newContext({ baseURL: server.url });
  const otherPage = await otherContext.newPage();
  await otherPage.goto('/login');
  await otherPage.getByLabel('Name').fill('ada');
  await otherPage.getByLabel('Password').fill(PASSWORD);
  await otherPage.getByRole('button', { name: 'Sign in' }).click();
  await expect(otherPage.getByRole('heading', { level: 1 })).toHaveText('Overview');
  await page.goto('/account');
  const sessions = page.getByRole('region', { name: 'Sessions' });
  await expect(sessions.getByRole('listitem')).toHaveCount(2);
  await sessions.locator('summary').click();
  await expect(sessions.getByText('has to sign in again')).toBeVisible();
  await page.getByRole('button', { name: 'End session' }).click();
  await expect(sessions.getByRole('listitem')).toHaveCount(1);
  expect((await otherPage.request.get('/api/session')).status()).toBe(401);
  await otherContext.close();
});

test('sensitive actions require the password again', async ({ page, server }) => {
  await signInAs(page, server, 'ada', 'admin');
  await page.goto('/confirm?next=/admin/users');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Confirm your identity');
  await expectAccessible(page);
  await picture(page, 'confirm');
  await page.getByLabel('Password').fill('not-the-password');
  await page.getByRole('button', { name: 'Confirm' }).click();
  await expect(page.getByText('Incorrect user name or password')).toBeVisible();
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Confirm' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Users');
  await expect(page.getByRole('main').getByText('Repeat the action.')).toBeVisible();
});
