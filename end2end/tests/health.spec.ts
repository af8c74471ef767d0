import { expect, test } from '../fixtures';

test('the server reports that it is alive and ready', async ({ server }) => {
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});
