// The resource use and the limits of an agent: a real agent and server, with minimal trainers.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { figure, millis, quantile } from './figure.mjs';
import { runJobs, startAgent, startServer, until } from './fleet.mjs';

/** Returns the CPU time of a process: fields 14 and 15 of proc(5), in ticks, of which Linux has 100 per second. */
function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const residentMib = (pid) => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
const mib = (value) => `${value.toFixed(1)} MiB`;
const percent = (value) => `${value.toFixed(2)} %`;

/** Starts a server and an agent whose trainer is this Python program; the trainer writes its results to `home`. */
async function host(trainer, flags = []) {
  const server = await startServer({ configs: true });
  const home = join(server.dir, 'home');
  mkdirSync(home);
  writeFileSync(join(home, 'trainer.py'), trainer);
  const agent = await startAgent(server, 'host', { flags, home, trainer: `python3 ${join(home, 'trainer.py')}` });
  await agent.untilIdle();
  const submit = async () => (await server.api('POST', '/api/queue/submit', { config_name: 'digits', target: 'worker' })).job_id;
  const status = async (job) => (await server.api('GET', `/api/queue/${job}`)).status;
  return { server, home, agent, submit, status };
}

async function idle() {
  const { server, agent: { pid } } = await host('');
  await sleep(2_000); // ignores the start of the agent
  const [startedAt, before] = [performance.now(), cpuSeconds(pid)];
  await sleep(60_000);
  const share = (cpuSeconds(pid) - before) / ((performance.now() - startedAt) / 1_000) * 100;
  figure('agent, idle, memory', [['', residentMib(pid), mib, 12]], 'VmRSS after a minute with an open stream');
  figure('agent, idle, CPU', [['', share, percent, 0.1]], 'user and system time over a minute, in percent of a core');
  await server.kill();
}

const GIB = 2 ** 30;

/** Writes 2 GiB as fast as possible, and stores the duration. */
const WRITER = `
import os, sys, time
line = b"x" * 99 + b"\\n"
block = line * 2621
began, written = time.monotonic(), 0
while written < 2 << 30:
    written += os.write(1, block)
with open(os.path.join(os.environ["HOME"], "duration"), "w") as duration:
    duration.write(f"{written} {time.monotonic() - began}")
`;

async function pump() {
  const { server, home, agent, submit } = await host(WRITER);
  const before = cpuSeconds(agent.pid);
  await submit();
  const resultFile = join(home, 'duration');
  let maxMemory = 0;
  await until('the trainer to have written', () => {
    maxMemory = Math.max(maxMemory, residentMib(agent.pid));
    return existsSync(resultFile) && readFileSync(resultFile, 'utf8').includes(' ');
  }, 20, 120_000);
  const [bytes, seconds] = readFileSync(resultFile, 'utf8').split(' ').map(Number);
  const speed = (value) => `${value.toFixed(0)} MB/s`;
  figure('log, trainer to disk', [['', bytes / seconds / 1e6, speed, 200, 'least']], '2 GiB in blocks of 256 KiB, while the agent sends as much as it can');
  figure('  the agent meanwhile', [['memory', maxMemory, mib], ['CPU', (cpuSeconds(agent.pid) - before) / seconds * 100, percent]], 'maximum of VmRSS; in percent of a core');
  await server.kill();
}

/** Computes for some seconds, and stores the duration. */
const CALCULATOR = `
import os, sys, time
began, n = time.monotonic(), 0
for i in range(60_000_000):
    n += i & 3
with open(os.path.join(os.environ["HOME"], "duration"), "w") as duration:
    duration.write(f"{time.monotonic() - began} {time.process_time()}")
`;

/** Measures the duration of a trainer that only computes, alternately alone and under the agent. */
async function overhead() {
  const { server, home, agent, submit } = await host(CALCULATOR);
  const resultFile = join(home, 'duration');
  const alone = () => new Promise((done, failed) => {
    spawn('python3', [join(home, 'trainer.py')], { env: { HOME: home, PATH: process.env.PATH } }).on('exit', done).on('error', failed);
  });
  const supervised = async () => {
    await submit();
    await until('the trainer to have computed', () => existsSync(resultFile), 20, 120_000);
    await agent.untilIdle();
  };
  const times = { alone: [], supervised: [] };
  for (let n = 0; n < 7; n += 1) {
    for (const [mode, run] of [['alone', alone], ['supervised', supervised]]) {
      rmSync(resultFile, { force: true });
      await run();
      times[mode].push(Number(readFileSync(resultFile, 'utf8').split(' ')[0]) * 1_000);
    }
  }
  const [without, under] = [quantile(times.alone, 0.5), quantile(times.supervised, 0.5)];
  figure('trainer that computes, under the agent', [['more', (under / without - 1) * 100, percent, 1], ['median', under, millis], ['alone', without, millis]], '7 runs of each, in turns');
  await server.kill();
}

/** Writes as much as 10,000 chunks of a log hold, and waits. */
const SPOOLER = `
import os, time
block = (b"x" * 99 + b"\\n") * 2621
home = os.environ["HOME"]
while not os.path.exists(os.path.join(home, "away")):
    time.sleep(0.05)
for n in range(10_010):
    os.write(1, block)
open(os.path.join(home, "written"), "w").close()
time.sleep(600)
`;

/** Measures from the start of an agent to its registration, with 10,000 unsent chunks of a log. */
async function spooled() {
  const { server, home, agent, submit, status } = await host(SPOOLER, ['--spool-limit', '4GiB']);
  const job = await submit();
  await until('the job to run', async () => await status(job) === 'running');
  await agent.kill();
  writeFileSync(join(home, 'away'), '');
  await until('the log to be written', () => existsSync(join(home, 'written')), 50, 180_000);
  const startedAt = performance.now();
  const restarted = await agent.restart();
  await until('the agent to be registered', () => restarted.lastLines().includes('registered at'), 1);
  const registered = performance.now() - startedAt;
  const { size } = await server.api('GET', `/api/queue/${job}/logs?offset=0&limit=1`);
  figure('agent, start to registered', [['', registered, millis, 2_000]], `with 2.4 GiB of log unsent, of which the server has ${(size / GIB).toFixed(2)} GiB by then`);
  await server.api('POST', `/api/queue/${job}/cancel`, {});
  await until('the job to be cancelled', async () => await status(job) === 'cancelled', 20, 120_000);
  await server.kill();
}

/** Measures whole jobs, from submit to completion, of an agent with 16 places whose trainer does nothing. */
export async function jobs() {
  const count = 1_000;
  const server = await startServer({ configs: true });
  const agent = await startAgent(server, 'host', { flags: ['--max-jobs', '16'], trainer: '/bin/true' });
  await runJobs(server, 100); // the first runs warm up
  const cpu = () => [cpuSeconds(server.pid), cpuSeconds(agent.pid)];
  const before = cpu();
  const seconds = await runJobs(server, count);
  const perJob = cpu().map((used, index) => ((used - before[index]) * 1_000) / count);
  const rate = (value) => `${value.toFixed(0)}/s`;
  figure('whole jobs with a process, 16 places', [['', count / seconds, rate, 500, 'least'], ['CPU per job, server', perJob[0], millis], ['agent', perJob[1], millis]], `${count} jobs, submitted 20 at a time; the trainer is /bin/true`);
  await agent.kill();
  await server.kill();
}

/** Runs all benchmarks in order. */
export async function agent() {
  for (const benchmark of [idle, pump, overhead, spooled]) await benchmark();
}

/** Measures from before a submit to the trainer's first instruction, alternating between the levels of the sandbox. */
export async function sandbox() {
  const server = await startServer({ configs: true });
  const trainer = "sh -c 'date +%s%N >began.new; mv began.new began'";
  const levels = ['none', 'files', 'full'];
  const hosts = {};
  for (const level of levels) {
    const agent = await startAgent(server, level, { trainer, sandbox: level });
    await agent.untilIdle();
    hosts[level] = { ...agent, times: [] };
  }
  for (let n = 0; n < 105; n += 1) {
    for (const level of levels) {
      const { workDir, untilIdle, times } = hosts[level];
      const submittedAt = performance.timeOrigin + performance.now();
      const job = { config_name: 'digits', target: 'worker', worker_labels: { name: level } };
      const { job_id: id } = await server.api('POST', '/api/queue/submit', job);
      const startFile = join(workDir, 'jobs', id, '1', 'work', 'began');
      await until('the trainer to begin', () => existsSync(startFile), 2, 30_000);
      if (n >= 5) times.push(Number(readFileSync(startFile, 'utf8')) / 1e6 - submittedAt); // the first runs warm up
      await untilIdle();
    }
  }
  const [p50, p99] = [0.5, 0.99].map((fraction) => (level) => quantile(hosts[level].times, fraction));
  figure('submit to the trainer\'s first instruction', [['p50', p50('none'), millis], ['p99', p99('none'), millis]], '100 jobs at each level, in turns; without a sandbox');
  for (const level of ['files', 'full']) {
    const differences = [['p50', p50(level) - p50('none'), millis, 25], ['p99', p99(level) - p99('none'), millis, 60]];
    figure(`  more at level ${level}`, differences, 'difference to none');
  }
  await server.kill();
}
