// The programs in dist/, started for one test and stopped at its end.
import { expect } from '@playwright/test';
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';

export const ROOT = resolve(__dirname, '..');
export const DIST = process.env.SIMPLETUNER_DIST ?? join(ROOT, 'dist');

/** Ports of each of Playwright's workers, below the range from which the kernel takes those of outgoing connections. */
const PORTS = { first: 12_000, each: 4_000 };
let candidate = process.pid;

/** Returns a free port that nothing else takes before the server listens there. */
export async function freePort(): Promise<number> {
  const first = PORTS.first + Number(process.env.TEST_PARALLEL_INDEX ?? 0) * PORTS.each;
  for (;;) {
    const port = first + (candidate++ % PORTS.each);
    const probe = createServer();
    const isFree = await new Promise<boolean>((done) => probe.once('error', () => done(false)).listen(port, '127.0.0.1', () => done(true)));
    if (!isFree) continue;
    await new Promise((done) => probe.close(done));
    return port;
  }
}

/** A running program from dist/, or from the path if `dir` is empty, whose output is written to a file. */
export class Program {
  private readonly child: ChildProcess;
  private readonly ended: Promise<string>;
  private ending: string | undefined;

  constructor(
    readonly name: string,
    file: string,
    args: string[],
    env: Record<string, string>,
    readonly logFile: string,
    dir = DIST,
  ) {
    const out = openSync(logFile, 'a');
    // The caller's SIMPLETUNER_* variables must not affect a program under test.
    const inherited = Object.entries(process.env).filter(([key]) => !key.startsWith('SIMPLETUNER_'));
    this.child = spawn(dir ? resolve(dir, file) : file, args, {
      stdio: ['ignore', out, out],
      env: { ...Object.fromEntries(inherited), ...env },
    });
    closeSync(out);
    this.ended = new Promise((done) => {
      this.child.once('error', (error) => done(error.message));
      this.child.once('exit', (code, signal) => done(signal ?? `exit status ${code}`));
    });
    void this.ended.then((how) => (this.ending = how));
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  log(): string {
    return readFileSync(this.logFile, 'utf8');
  }

  /** Waits until `ready` returns true; fails immediately if the program ends. */
  async until(state: string, ready: () => Promise<boolean>, ms = 15_000): Promise<void> {
    for (const end = Date.now() + ms; Date.now() < end; await new Promise((next) => setTimeout(next, 50))) {
      if (this.ending !== undefined) throw new Error(`${this.name} ended (${this.ending}):\n${this.log()}`);
      if (await ready()) return;
    }
    throw new Error(`${this.name} was not ${state} in ${ms} ms:\n${this.log()}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Returns how the program ended, or `undefined` if it still runs after `ms`. */
  async end(ms: number): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<undefined>((done) => (timer = setTimeout(() => done(undefined), ms)));
    const how = await Promise.race([this.ended, timeout]);
    clearTimeout(timer);
    return how;
  }

  /** Stops the program as an operator would; fails if it does not end within 5 s or has panicked. */
  async stop(): Promise<void> {
    this.signal('SIGTERM');
    const how = await this.end(5_000);
    if (how === undefined) {
      this.signal('SIGKILL');
      await this.end(5_000);
    }
    expect.soft(how, `${this.name} must end within 5 s of SIGTERM:\n${this.log()}`).toBeDefined();
    expect.soft(this.log(), `${this.name} must not panic`).not.toMatch(/panicked at/);
  }
}
