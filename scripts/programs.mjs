// Starts and stops programs. Each writes to a log file, and its unexpected end is reported.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const running = [];

/** Starts a program. It inherits our environment without SIMPLETUNER_* variables, with `env` added. */
export function program(name, logs, file, args, env) {
  const log = join(logs, `${name}.log`);
  const out = openSync(log, 'w', 0o600);
  const inherited = Object.entries(process.env).filter(([key]) => !key.startsWith('SIMPLETUNER_'));
  // In a process group of its own, so that Ctrl-C reaches only this script, which controls the order of stopping.
  const child = spawn(file, args, { stdio: ['ignore', out, out], detached: true, env: { ...Object.fromEntries(inherited), ...env } });
  closeSync(out);
  const lastLines = () => readFileSync(log, 'utf8').trimEnd().split('\n').slice(-20).join('\n');
  const self = { name, child, lastLines, stopping: false };
  self.ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `exit status ${code}`));
  });
  self.ended.then((outcome) => {
    running.splice(running.indexOf(self), 1);
    if (!self.stopping) program.onUnexpectedEnd(name, outcome, lastLines());
  });
  running.push(self);
  return self;
}
/** Called when a program ends unexpectedly. */
program.onUnexpectedEnd = () => {};

/** Stops all programs, the last one first: with SIGTERM, with a second one (stop immediately), then with SIGKILL. */
export async function stopAll() {
  for (const self of [...running].reverse()) {
    self.stopping = true;
    for (const [signal, patience] of [['SIGTERM', 10_000], ['SIGTERM', 5_000], ['SIGKILL', 5_000]]) {
      self.child.kill(signal);
      const timer = new AbortController();
      const timeout = sleep(patience, 'timeout', { signal: timer.signal }).catch(() => 'timeout');
      const outcome = await Promise.race([self.ended, timeout]);
      timer.abort();
      if (outcome !== 'timeout') break;
    }
  }
}

// If this script ends unexpectedly, no program remains running.
process.on('exit', () => running.forEach(({ child }) => child.kill('SIGKILL')));
