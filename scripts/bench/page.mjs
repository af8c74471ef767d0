// The dashboard in a browser: time to paint, layout shifts, latency of updates, and the cost of a busy fleet.
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { FakeAgent } from './fake-agent.mjs';
import { figure, millis, quantile } from './figure.mjs';
import { ADMIN, json, startServer } from './fleet.mjs';

const share = (value) => `${value.toFixed(1)} %`;
const shift = (value) => value.toFixed(3);
/** Returns the time of a clock that the browser on this host shares, in ms. */
const now = () => performance.timeOrigin + performance.now();

/** Runs `work` with a server and a browser, and stops both. */
async function withBrowser(options, work) {
  const { chromium } = await import('@playwright/test');
  const server = await startServer(options);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', chromiumSandbox: process.getuid() !== 0, args: ['--disable-gpu'] });
  const open = async (path) => {
    const context = await browser.newContext({ extraHTTPHeaders: { authorization: `Bearer ${ADMIN}` } });
    const tab = await context.newPage();
    await tab.addInitScript(observePerformance);
    await tab.goto(`${server.url}${path}`);
    if (new URL(tab.url()).pathname !== path.split('?')[0]) throw new Error(`the page is ${tab.url()}`);
    return tab;
  };
  try {
    await work(server, open);
  } finally {
    await browser.close();
    await server.kill();
  }
}

/** Runs in the page before all other scripts: records paints, layout shifts and long tasks. */
function observePerformance() {
  const records = (window.bench = { paint: 0, shift: 0, tasks: [] });
  const observe = (type, record) => new PerformanceObserver((list) => list.getEntries().forEach(record)).observe({ type, buffered: true });
  observe('largest-contentful-paint', (entry) => (records.paint = entry.startTime));
  observe('layout-shift', (entry) => (records.shift += entry.hadRecentInput ? 0 : entry.value));
  observe('longtask', (entry) => records.tasks.push(entry.duration));
}

const live = (tab) => tab.locator('.is-live:visible').first().waitFor();

/** Registers `count` workers, each with `gpus` GPUs of its own; returns functions that report for them. */
async function fleet(server, count, gpus) {
  const http = new Agent({ keepAlive: true, maxSockets: 16 });
  const workers = [];
  const add = async (n) => {
    const { worker_id: id, token } = await server.api('POST', '/api/admin/workers', { name: `gpu-${n}`, worker_type: 'persistent', labels: { rack: `r${n % 4}` } });
    const post = (key, path, body) => json(http, `${server.url}/api/workers/${path}`, 'POST', { 'x-worker-token': key }, body);
    const devices = Array.from({ length: gpus }, (_, index) => ({ index, uuid: `GPU-${n}-${index}`, name: 'NVIDIA A100-SXM4-80GB', vram_gb: 80 }));
    const { session } = await post(token, 'register', { protocol: 1, persistent: true, accelerator_type: 'cuda', gpus: devices, boot_id: `bench-${n}` });
    const sendHeartbeat = () => post(session, 'heartbeat', { telemetry: [{ at: new Date().toISOString(), gpus: devices.map(({ uuid }) => reading(uuid)) }] });
    workers[n] = { id, sendHeartbeat };
  };
  for (let n = 0; n < count; n += 16) await Promise.all(Array.from({ length: Math.min(16, count - n) }, (_, k) => add(n + k)));
  return { workers, close: () => http.destroy() };
}

const reading = (uuid) => ({
  uuid,
  utilization_percent: Math.round(Math.random() * 100),
  memory_used_gb: Math.random() * 80,
  temperature_celsius: 40 + Math.random() * 40,
  power_watts: 100 + Math.random() * 300,
});

/** Measures the largest paint and layout shifts: ten visits to each page with an empty cache. */
export async function paint() {
  await withBrowser({ configs: true }, async (server, open) => {
    const { workers, close } = await fleet(server, 20, 4);
    await Promise.all(workers.map(({ sendHeartbeat }) => sendHeartbeat()));
    const agent = await FakeAgent.connect(server, 'bench');
    const [offer] = await Promise.all([agent.offer(), server.api('POST', '/api/queue/submit', { config_name: 'digits', target: 'worker' })]);
    await agent.report(offer, 'starting');
    for (const path of ['/', '/jobs', `/jobs/${offer.job_id}`, '/train', '/admin/workers', `/admin/workers/${workers[0].id}`, '/gpus']) {
      const visits = [];
      for (let n = 0; n < 10; n += 1) {
        const tab = await open(path);
        if (!(await tab.locator('.is-plain').count())) await live(tab);
        await tab.waitForFunction(() => window.bench.paint > 0);
        await tab.evaluate(() => new Promise((done) => requestIdleCallback(done)));
        visits.push(await tab.evaluate(() => window.bench));
        await tab.context().close();
      }
      const paints = visits.map(({ paint }) => paint);
      const name = path.replace(/[jw]_\w+/, '…');
      figure(`page ${name}`, [
        ['largest paint, median', quantile(paints, 0.5), millis, 500],
        ['p90', quantile(paints, 0.9), millis],
        ['layout shift, largest', Math.max(...visits.map(({ shift }) => shift)), shift, 0.02],
      ], '10 visits over loopback until it is live, each with an empty cache');
    }
    agent.close();
    close();
  });
}

/** Measures from before a change is sent to the server until the document contains it. */
export async function latency() {
  await withBrowser({}, async (server, open) => {
    const { workers, close } = await fleet(server, 20, 1);
    const tab = await open('/admin/workers');
    await live(tab);
    const times = [];
    for (let n = 0; n < 100; n += 1) {
      const name = `changed-${n}`;
      const shownAt = tab.evaluate((name) => new Promise((done) => {
        const check = () => document.body.textContent.includes(name) && done(performance.timeOrigin + performance.now());
        new MutationObserver(check).observe(document.body, { subtree: true, childList: true, characterData: true });
        check();
      }), name);
      await tab.evaluate(() => 0); // the page observes changes from here
      const startedAt = now();
      await server.api('PATCH', `/api/admin/workers/${workers[n % 20].id}`, { name });
      times.push(await shownAt - startedAt);
      await sleep(100 + Math.random() * 500);
    }
    close();
    figure('a change until it shows in an open page', [['p50', quantile(times, 0.5), millis], ['p99', quantile(times, 0.99), millis, 300]], '100 renamed workers, 0.1 to 0.6 s apart, from before the PATCH until the document has the name');
  });
}

/** Measures the CPU time of a page during 50 changes of the fleet per second. */
export async function busy() {
  const SECONDS = 20;
  await withBrowser({}, async (server, open) => {
    const { workers, close } = await fleet(server, 1_000, 1);
    for (const [path, change] of [
      ['/admin/workers', (n) => server.api('PATCH', `/api/admin/workers/${workers[n % 1_000].id}`, { labels: { rack: `r${n}` } })],
      ['/gpus', (n) => workers[n % 1_000].sendHeartbeat()],
    ]) {
      const tab = await open(path);
      await live(tab);
      const cdp = await tab.context().newCDPSession(tab);
      await cdp.send('Performance.enable');
      const taskSeconds = async () => (await cdp.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value;
      await tab.evaluate(() => (window.bench.tasks = []));
      const [before, startedAt] = [await taskSeconds(), performance.now()];
      const changes = [];
      for (let n = 0; n < SECONDS * 50; n += 1) {
        changes.push(change(n * 7));
        await sleep(Math.max(0, startedAt + (n + 1) * 20 - performance.now()));
      }
      await Promise.all(changes);
      const seconds = (performance.now() - startedAt) / 1_000;
      const tasks = await tab.evaluate(() => window.bench.tasks);
      figure(`page ${path}, 1,000 workers, 50 changes a second`, [
        ['of a core', ((await taskSeconds() - before) / seconds) * 100, share, 30],
        ['longest task', Math.max(0, ...tasks), millis],
      ], `${seconds.toFixed(0)} s, the main thread's tasks as the browser counts them; ${(changes.length / seconds).toFixed(0)} changes a second`);
      await tab.context().close();
    }
    close();
  });
}

/** Measures a comparison of twenty jobs with 10,000 points each: from the click on its link until the curves are drawn. */
export async function compare() {
  const [JOBS, POINTS, CHUNK] = [20, 10_000, 500];
  await withBrowser({ configs: true }, async (server, open) => {
    const agent = await FakeAgent.connect(server, 'bench');
    const ids = [];
    for (let n = 0; n < JOBS; n += 1) {
      const [offer] = await Promise.all([agent.offer(), server.api('POST', '/api/queue/submit', { config_name: 'digits', target: 'worker' })]);
      await agent.report(offer, 'starting');
      const point = (step) => ({ step, at: new Date(Date.now() - (POINTS - step) * 1_000).toISOString(), loss: 2 * Math.exp(-step / (300 + 40 * n)) + Math.random() / 10, learning_rate: 1e-4 / (n + 1), metrics: { grad_norm: Math.random() } });
      for (let first = 0; first < POINTS; first += CHUNK) await agent.progress(offer, Array.from({ length: CHUNK }, (_, k) => point(first + k)));
      await agent.report(offer, 'completed');
      ids.push(offer.job_id);
    }
    const tab = await open('/jobs');
    const address = `/jobs/compare?ids=${ids.join(',')}`;
    const times = [];
    for (let n = 0; n < 12; n += 1) {
      await live(tab);
      const time = await tab.evaluate(([address, jobs]) => new Promise((done) => {
        const link = document.body.appendChild(Object.assign(document.createElement('a'), { href: address }));
        const startedAt = performance.now();
        const check = () => {
          const count = document.querySelectorAll('.chart-halves figure:last-child .chart-wider .curve[d]').length;
          requestAnimationFrame(count < jobs ? check : () => done(performance.now() - startedAt));
        };
        link.click();
        check();
      }), [address, JOBS]);
      if (n >= 2) times.push(time); // the first ones load the code of the page
      await tab.goBack();
      await tab.locator('.chart-halves').waitFor({ state: 'detached' }).catch(() => {});
    }
    agent.close();
    figure(`comparison of ${JOBS} jobs with ${POINTS.toLocaleString('en')} points`, [['median', quantile(times, 0.5), millis, 300], ['p90', quantile(times, 0.9), millis]], '10 clicks on its link in the list of jobs, until the curves of its charts are drawn');
  });
}

/** Measures the server's response time for a page of a long list. */
export async function list() {
  const server = await startServer();
  const { close } = await fleet(server, 10_000, 1);
  const http = new Agent({ keepAlive: true });
  for (const path of ['/admin/workers', '/admin/workers?q=gpu-99', '/gpus']) {
    const times = [];
    let bytes = 0;
    for (let n = 0; n < 30; n += 1) {
      const startedAt = performance.now();
      const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${ADMIN}`, accept: 'text/html' } });
      if (response.status !== 200) throw new Error(`${path} returned ${response.status}`);
      bytes = (await response.arrayBuffer()).byteLength;
      if (n >= 5) times.push(performance.now() - startedAt);
    }
    const kb = (value) => `${(value / 1_000).toFixed(0)} kB`;
    figure(`server, ${path} of 10,000 workers`, [['median', quantile(times, 0.5), millis, 30], ['p90', quantile(times, 0.9), millis], ['document', bytes, kb]], '25 requests over loopback until the last byte');
  }
  http.destroy();
  close();
  await server.kill();
}
