import { expect, test } from '../fixtures';

test('the server says that it lives and that it is ready', async ({ server }) => {
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});
