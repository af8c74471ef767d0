// Steps that several specs share: sign in, create a worker, wait for a job.
import { expect, type Page } from '@playwright/test';
import type { Server } from './fixtures';

/** Signs in on the sign-in page, in any language. */
export async function signIn(page: Page, server: Server): Promise<void> {
  await page.goto('/login');
  const form = page.locator('form[action="/ui/login"]');
  await form.locator('[name=password]').fill(server.adminToken);
  await form.getByRole('button').click();
  await expect(page).toHaveURL(`${server.url}/`);
}

export const PASSWORD = 'correct-horse-battery';

/** Creates a user through the API and signs in as them. */
export async function signInAs(page: Page, server: Server, name: string, role: string): Promise<void> {
  const body = JSON.stringify({ name, role, password: PASSWORD });
  expect((await server.api('/api/admin/users', { method: 'POST', body })).status).toBe(201);
  await page.goto('/login');
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');
}

/** Creates a user and signs in with an API token that has only these scopes. */
export async function signInWith(page: Page, server: Server, name: string, scopes: string[]): Promise<void> {
  const post = async (path: string, body: object) =>
    (await server.api(path, { method: 'POST', body: JSON.stringify(body) })).json();
  const { id } = await post('/api/admin/users', { name, role: 'researcher', password: PASSWORD });
  const { secret } = await post(`/api/admin/users/${id}/tokens`, { name: 'narrow', scopes });
  await signIn(page, { ...server, adminToken: secret });
}

/** Waits until the page is hydrated and receives events. */
export async function live(page: Page): Promise<void> {
  await expect(page.locator('.is-live:visible').first()).toBeVisible();
}

/** Creates a worker through the API. */
export async function makeWorker(server: Server, name: string, labels: Record<string, string> = {}): Promise<{ worker_id: string; token: string }> {
  const response = await server.api('/api/admin/workers', { method: 'POST', body: JSON.stringify({ name, worker_type: 'persistent', labels }) });
  expect(response.status).toBe(201);
  return response.json();
}

/** The sessions of registered agents by worker token. */
const sessions = new Map<string, string>();

/** Returns the `X-Worker-Token` that the agent with this token sends after its registration. */
export const sessionOf = (token: string): string => sessions.get(token) ?? token;

/** Sends a request as the agent with this token. */
export async function sendAsAgent(server: Server, token: string, path: string, body: unknown): Promise<void> {
  const key = path === 'register' ? token : sessionOf(token);
  const headers = { 'x-worker-token': key, 'content-type': 'application/json' };
  const response = await fetch(`${server.url}/api/workers/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(response.status, await response.clone().text()).toBe(200);
  if (path === 'register') sessions.set(token, (await response.json()).session);
}

/** Registers a worker with `count` GPUs. */
export async function registerGpus(server: Server, token: string, count: number): Promise<void> {
  const gpus = Array.from({ length: count }, (_, index) => ({ index, uuid: `GPU-${index}`, name: 'NVIDIA A100-SXM4-80GB', vram_gb: 80 }));
  await sendAsAgent(server, token, 'register', { protocol: 1, persistent: true, accelerator_type: 'cuda', gpus, max_jobs: count });
}

/** Sends a heartbeat with GPU readings. */
export async function reportReadings(server: Server, token: string, gpus: object[]): Promise<void> {
  await sendAsAgent(server, token, 'heartbeat', { telemetry: [{ at: new Date().toISOString(), gpus }] });
}

/** Submits a configuration through the API and returns the ID of the job. */
export async function submit(server: Server, config: string, fields: object = {}): Promise<string> {
  const body = JSON.stringify({ config_name: config, target: 'worker', ...fields });
  const response = await server.api('/api/queue/submit', { method: 'POST', body });
  expect(response.status).toBe(201);
  return (await response.json()).job_id;
}

/** Waits until a job has this status. */
export async function waitForJob(server: Server, job: string, status: string): Promise<void> {
  const currentStatus = async () => (await (await server.api(`/api/queue/${job}`)).json()).status;
  await expect.poll(currentStatus, { timeout: 60_000 }).toBe(status);
}

/** Searches the list of jobs. */
export async function searchJobs(page: Page, query: string) {
  const search = page.locator('#content input[type=search]');
  await search.fill(query);
  await search.press('Enter');
  await expect(page).toHaveURL((url) => url.searchParams.get('q') === query);
}
