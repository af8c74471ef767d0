// A GPU host whose agent is controlled by a test: it registers, listens, accepts offers and reports.
import { expect } from '@playwright/test';
import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import type { Server } from './fixtures';
import { sendAsAgent, sessionOf, submit } from './steps';

export interface Offer {
  job_id: string;
  attempt: number;
  upload_token: string;
}

export interface HostOptions {
  gpus?: number;
  model?: string;
  vram?: number;
  labels?: Record<string, string>;
  /** The labels that its agent reports. */
  reported?: Record<string, string>;
  version?: string;
}

export class Host {
  private readonly offers: Offer[] = [];
  private readonly closing = new AbortController();

  private constructor(
    private readonly server: Server,
    readonly id: string,
    readonly token: string,
    readonly gpus: string[],
  ) {}

  /** Creates a worker, registers its agent and opens its stream. */
  static async connect(server: Server, name: string, options: HostOptions = {}): Promise<Host> {
    const { gpus = 4, model = 'NVIDIA A100-SXM4-80GB', vram = 80, labels = {}, reported = {}, version = '0.1.0' } = options;
    const body = JSON.stringify({ name, worker_type: 'persistent', labels });
    const response = await server.api('/api/admin/workers', { method: 'POST', body });
    expect(response.status).toBe(201);
    const { worker_id: id, token } = await response.json();
    const devices = Array.from({ length: gpus }, (_, index) => ({ index, uuid: `GPU-${name}-${index}`, name: model, vram_gb: vram }));
    const host = new Host(server, id, token, devices.map(({ uuid }) => uuid));
    await host.post('register', {
      protocol: 1, persistent: true, accelerator_type: 'cuda', gpus: devices, boot_id: name, host: `${name}.example.org`,
      labels: reported, agent_version: version, tls_verify: true, sandbox: { least: 'full', most: 'full' },
    });
    await host.listen();
    return host;
  }

  private post(path: string, body: unknown): Promise<void> {
    return sendAsAgent(this.server, this.token, path, body);
  }

  private async listen(): Promise<void> {
    const headers = { 'x-worker-token': sessionOf(this.token) };
    const response = await fetch(`${this.server.url}/api/workers/stream`, { headers, signal: this.closing.signal });
    expect(response.status).toBe(200);
    void this.readEvents(response.body!).catch(() => {}); // closed by the test, or with the server
  }

  private async readEvents(stream: ReadableStream<Uint8Array>): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const data = block.split('\n').find((line) => line.startsWith('data:'));
        const event = data && JSON.parse(data.slice('data:'.length));
        if (event?.type === 'job_submit') this.offers.push(event);
      }
    }
  }

  /** Waits for the next offer. */
  async offer(): Promise<Offer> {
    await expect.poll(() => this.offers.length, { timeout: 15_000 }).toBeGreaterThan(0);
    return this.offers.shift()!;
  }

  /** Returns the next offer if it has arrived. */
  nextOffer(): Offer | undefined {
    return this.offers.shift();
  }

  /** Accepts the next offer and runs it. */
  async run(): Promise<Offer> {
    const offer = await this.offer();
    await this.report(offer, 'starting');
    await this.report(offer, 'running');
    return offer;
  }

  report(offer: Offer, status: string, more: object = {}): Promise<void> {
    return this.post(`job/${offer.job_id}/status`, { attempt: offer.attempt, status, ...more });
  }

  progress(offer: Offer, points: object[]): Promise<void> {
    return this.send('POST', offer, 'progress', JSON.stringify({ attempt: offer.attempt, points }));
  }

  /** Sends any number of points, in as many requests as the server allows. */
  async longProgress(offer: Offer, points: object[]): Promise<void> {
    for (let first = 0; first < points.length; first += 500) await this.progress(offer, points.slice(first, first + 500));
  }

  /** Sends current GPU readings. */
  sendReadings(gpus: object[]): Promise<void> {
    return this.post('heartbeat', { telemetry: [{ at: new Date().toISOString(), gpus }] });
  }

  /**
   * Sends GPU readings of the past, given in seconds before now. A heartbeat holds few readings, and the server takes
   * the time of its last one as now, so each heartbeat ends with a current one.
   */
  async sendPastReadings(gpus: (ago: number) => object[], ages: number[]): Promise<void> {
    const now = Date.now();
    const readingsAt = (ago: number) => ({ at: new Date(now - ago * 1_000).toISOString(), gpus: gpus(ago) });
    for (let first = 0; first < ages.length; first += 11) {
      await this.post('heartbeat', { telemetry: [...ages.slice(first, first + 11), 0].map(readingsAt) });
    }
  }

  private async send(method: string, offer: Offer, path: string, body: Uint8Array | string, headers: Record<string, string> = {}): Promise<void> {
    const response = await fetch(`${this.server.url}/api/workers/job/${offer.job_id}/${path}`, {
      method, body: body as BodyInit, headers: { 'x-upload-token': offer.upload_token, ...headers },
    });
    expect(response.status, await response.clone().text()).toBe(200);
  }

  /** Sends a log from an offset, before which `dropped` bytes were lost; returns the next offset. */
  async log(offer: Offer, text: string, offset = 0, dropped = 0): Promise<number> {
    const bytes = Buffer.from(text);
    const chunkSize = 1_000_000; // the limit of the server is slightly higher
    for (let at = 0; at < bytes.length; at += chunkSize) {
      const droppedParameter = dropped && at === 0 ? `&dropped=${dropped}` : '';
      await this.send('PUT', offer, `logs?attempt=${offer.attempt}&offset=${offset + at}${droppedParameter}`, bytes.subarray(at, at + chunkSize));
    }
    return offset + bytes.length;
  }

  file(offer: Offer, path: string, kind: string, bytes: Uint8Array): Promise<void> {
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const encodedPath = path.split('/').map(encodeURIComponent).join('/');
    return this.send('PUT', offer, `artifacts/${encodedPath}?attempt=${offer.attempt}&kind=${kind}`, bytes, { 'x-content-sha256': sha256 });
  }

  /** Uploads a checkpoint of one file, and completes it. */
  async checkpoint(offer: Offer, step: number): Promise<void> {
    const [name, bytes] = [`checkpoint-${step}`, Buffer.alloc(1_000, step % 256)];
    const path = `${name}/model.safetensors`;
    await this.file(offer, path, 'checkpoint', bytes);
    const files = [{ path, size_bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }];
    await this.send('POST', offer, `checkpoint?attempt=${offer.attempt}`, JSON.stringify({ name, files }));
  }

  /** Closes the stream without disconnecting. */
  close(): void {
    this.closing.abort();
  }
}

/** Connects a host and runs a job on it. */
export async function startJob(server: Server, options: HostOptions = {}): Promise<{ host: Host; offer: Offer }> {
  const host = await Host.connect(server, 'gpu-1', options);
  await submit(server, 'digits');
  return { host, offer: await host.run() };
}

/** Returns a PNG of a training in progress: noise that becomes a gradient as `share` increases from 0 to 1. */
export function sample(share: number, seed: number, size = 128): Buffer {
  const rows = Buffer.alloc(size * (size * 3 + 1));
  let random = seed * 7_919 + 1;
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) {
      random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
      const noise = (random % 256) * (1 - share);
      const at = y * (size * 3 + 1) + 1 + x * 3;
      const picture = [x * 2, y * 2, 255 - Math.abs(x - y) * 2];
      for (let c = 0; c < 3; c += 1) rows[at + c] = Math.max(0, Math.min(255, noise + (picture[(c + seed) % 3] ?? 0) * share));
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(kind: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  out.set(body, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

function crc(bytes: Buffer): number {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
