// Our programs and HyperQueue, a task scheduler without a database, in turns: the start of a job, and whole jobs.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ADMIN, HOME, ROOT, runJobs, startAgent, startServer, until } from './fleet.mjs';
import { figure, millis, quantile } from './figure.mjs';

const PLACES = 16;
const TURNS = 5;
const STARTS_PER_TURN = 10;
const JOBS_PER_TURN = 300;

const median = (values) => quantile(values, 0.5);
/** Reads a time in nanoseconds; returns it in milliseconds. */
const readTime = (file) => Number(readFileSync(file, 'utf8')) / 1e6;
const now = () => performance.timeOrigin + performance.now();

/** HyperQueue's server with one worker; see hq.py. */
class HyperQueue {
  #dir = mkdtempSync(join(HOME, 'hq-'));
  #starts = 0;

  constructor() {
    const python = execFileSync(join(ROOT, 'scripts/bench/hq-setup'), { encoding: 'utf8' }).trim();
    this.child = spawn(python, [join(ROOT, 'scripts/bench/hq.py'), `${PLACES}`], { cwd: this.#dir, stdio: ['pipe', 'pipe', 'ignore'] });
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  async #ask(command) {
    this.child.stdin.write(`${command}\n`);
    const { value, done } = await this.lines.next();
    if (done) throw new Error('HyperQueue has ended');
    return Number(value);
  }

  /** Runs this number of tasks; returns how many end per second. */
  rate = async (count) => count / await this.#ask(`rate ${count}`);

  /** Returns the time from a submit to the first instruction, in ms. */
  async start() {
    const file = join(this.#dir, `began-${this.#starts += 1}`);
    const submittedAt = await this.#ask(`start ${file}`) / 1e6;
    await until('the task to begin', () => existsSync(file), 2);
    return readTime(file) - submittedAt;
  }

  close() {
    this.child.stdin.end();
  }
}

/** Our server, with one agent for jobs that do nothing, and one for jobs that write their times. */
class Ours {
  static async create() {
    const self = new Ours();
    self.server = await startServer({ configs: true });
    const flags = ['--max-jobs', `${PLACES}`];
    self.agents = {
      nothing: await startAgent(self.server, 'nothing', { flags, trainer: '/bin/true' }),
      times: await startAgent(self.server, 'times', { flags, trainer: "sh -c 'date +%s%N >began.new; mv began.new began; date +%s%N >ended'" }),
    };
    for (const agent of Object.values(self.agents)) await agent.untilIdle();
    return self;
  }

  /** Runs this number of jobs; returns how many end per second. */
  rate = async (count) => count / await runJobs(this.server, count, { worker_labels: { name: 'nothing' } });

  /** Returns the times from a submit to the first instruction, and from the last one to the end of the followed log, in ms. */
  async start() {
    const submittedAt = now();
    const job = { config_name: 'digits', target: 'worker', worker_labels: { name: 'times' } };
    const { job_id: id } = await this.server.api('POST', '/api/queue/submit', job);
    const endSeenAt = await this.#follow(id);
    const file = (name) => join(this.agents.times.workDir, 'jobs', id, '1', 'work', name);
    return { start: readTime(file('began')) - submittedAt, end: endSeenAt - readTime(file('ended')) };
  }

  /** Follows a log until its job has ended; returns when. */
  #follow(id) {
    return new Promise((done, failed) => {
      const url = `${this.server.url}/api/queue/${id}/logs?follow=1&attempt=1`;
      request(url, { headers: { authorization: `Bearer ${ADMIN}` } }, (response) => {
        if (response.statusCode !== 200) failed(new Error(`the log cannot be followed: ${response.statusCode}`));
        response.on('end', () => done(now())).on('error', failed).resume();
      }).on('error', failed).end();
    });
  }
}

export async function peers() {
  const [hq, ours] = [new HyperQueue(), await Ours.create()];
  await Promise.all([hq.rate(100), ours.rate(100)]); // the first runs warm up
  const [starts, ends, rates] = [{ hq: [], ours: [] }, [], { hq: [], ours: [] }];
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (let n = 0; n < STARTS_PER_TURN; n += 1) starts.hq.push(await hq.start());
    for (let n = 0; n < STARTS_PER_TURN; n += 1) {
      const { start, end } = await ours.start();
      starts.ours.push(start);
      ends.push(end);
    }
  }
  for (let turn = 0; turn < TURNS; turn += 1) {
    rates.hq.push(await hq.rate(JOBS_PER_TURN));
    rates.ours.push(await ours.rate(JOBS_PER_TURN));
  }
  hq.close();
  const times = (value) => `${value.toFixed(2)} x`;
  const perSecond = (value) => `${value.toFixed(0)}/s`;
  const [start, hqStart, rate, hqRate] = [starts.ours, starts.hq, rates.ours, rates.hq].map(median);
  figure('submit to the trainer\'s first instruction', [['p50', start, millis, 6], ['HyperQueue', hqStart, millis], ['ratio', start / hqStart, times, 1.5]], `${TURNS * STARTS_PER_TURN} jobs each, in turns; without a sandbox`);
  figure('end of the process to the end of a followed log', [['p50', median(ends), millis, 10], ['p90', quantile(ends, 0.9), millis]], 'the same jobs');
  figure(`whole jobs with a process, ${PLACES} places`, [['', rate, perSecond, 500, 'least'], ['HyperQueue', hqRate, perSecond], ['ratio', rate / hqRate, times, 0.8, 'least']], `medians of ${TURNS} runs of ${JOBS_PER_TURN} jobs each, in turns`);
  await ours.server.kill();
}
