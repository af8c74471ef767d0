// An agent that accepts every offer without training: it registers, holds the stream
// open, and reports the given status.
import { Agent, request } from 'node:http';
import { json, until } from './fleet.mjs';

export class FakeAgent {
  #http = new Agent({ keepAlive: true });
  #waiting = [];
  #text = '';

  /** Connects the agent of a new worker; it is idle when this returns. */
  static async connect(server, name) {
    const self = new FakeAgent();
    const { worker_id: worker, token } = await server.api('POST', '/api/admin/workers', { name, worker_type: 'persistent' });
    Object.assign(self, { url: server.url, headers: { 'x-worker-token': token } });
    const { session } = await json(self.#http, `${server.url}/api/workers/register`, 'POST', self.headers, { name, protocol: 1, persistent: true, boot_id: 'bench' });
    self.headers = { 'x-worker-token': session };
    self.stream = request(`${server.url}/api/workers/stream`, { headers: self.headers }, (response) => {
      response.setEncoding('utf8').on('data', (chunk) => self.#read(chunk, performance.now())).on('error', () => {});
    });
    self.stream.on('error', () => {}).end(); // a pending `offer()` then reports the failure
    await until('the stream', async () => (await server.api('GET', `/api/admin/workers/${worker}`)).status === 'idle');
    return self;
  }

  #read(chunk, at) {
    this.#text += chunk;
    const events = this.#text.split('\n\n');
    this.#text = events.pop();
    for (const event of events) {
      const data = event.split('\n').find((line) => line.startsWith('data:'));
      const message = data && JSON.parse(data.slice('data:'.length));
      if (message?.type === 'job_submit') this.#waiting.shift()?.({ ...message, at });
    }
  }

  /** Waits for the next offer; `at` is the time of its arrival. */
  offer() {
    return new Promise((done, failed) => {
      const timer = setTimeout(() => failed(new Error('no offer came within 30 s')), 30_000);
      this.#waiting.push((offer) => (clearTimeout(timer), done(offer)));
    });
  }

  /** Reports the status of an offered attempt. */
  async report({ job_id: job, attempt }, status) {
    await json(this.#http, `${this.url}/api/workers/job/${job}/status`, 'POST', this.headers, { status, attempt });
  }

  /** Sends points of an offered attempt. */
  async progress({ job_id: job, attempt, upload_token: token }, points) {
    await json(this.#http, `${this.url}/api/workers/job/${job}/progress`, 'POST', { 'x-upload-token': token }, { attempt, points });
  }

  close() {
    this.stream.destroy();
    this.#http.destroy();
  }
}
