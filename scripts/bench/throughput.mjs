// Draws docs/throughput.svg from the lines of the load generator (scripts/bench/run throughput).
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [720, 340, 56, 80, 48];
const COLORS = { 1: '#1d4ed8', 2: '#0891b2', 4: '#7c3aed' };
const LINE = /^complete jobs, (\d+) workers, (\d+) server\(s\): (\d+) jobs\/s/;

const text = readFileSync(0, 'utf8');
process.stdout.write(text);
const measured = text.split('\n').map((line) => LINE.exec(line)?.slice(1).map(Number)).filter(Boolean);
if (measured.length === 0) throw new Error('there is no line "complete jobs, N workers, N server(s): N jobs/s"');
const unique = (index) => [...new Set(measured.map((row) => row[index]))].sort((a, b) => a - b);
const [fleets, counts] = [unique(0), unique(1)];

const step = 500;
const top = Math.ceil(Math.max(...measured.map(([, , rate]) => rate)) / step) * step;
const y = (rate) => HEIGHT - BOTTOM - (rate / top) * (HEIGHT - TOP - BOTTOM);
const groupWidth = (WIDTH - LEFT - 16) / fleets.length;
const barWidth = Math.min(48, (groupWidth - 24) / counts.length);

const label = (x, at, content, anchor = 'middle', more = '') => `<text x="${x.toFixed(1)}" y="${at.toFixed(1)}" text-anchor="${anchor}"${more}>${content}</text>`;
const grid = Array.from({ length: top / step + 1 }, (_, n) => n * step)
  .map((rate) => `<line x1="${LEFT}" x2="${WIDTH - 16}" y1="${y(rate)}" y2="${y(rate)}" stroke="#d4d4d8"/>${label(LEFT - 8, y(rate) + 4, rate.toLocaleString('en'), 'end')}`);
const bars = fleets.flatMap((workers, group) => {
  const middle = LEFT + groupWidth * (group + 0.5);
  const names = label(middle, HEIGHT - BOTTOM + 20, `${workers.toLocaleString('en')} workers`);
  return [names, ...counts.map((servers, index) => {
    const rate = measured.find((row) => row[0] === workers && row[1] === servers)?.[2] ?? 0;
    const x = middle + (index - counts.length / 2) * barWidth;
    return `<rect x="${(x + 2).toFixed(1)}" y="${y(rate).toFixed(1)}" width="${barWidth - 4}" height="${(y(0) - y(rate)).toFixed(1)}" fill="${COLORS[servers]}"/>${label(x + barWidth / 2, y(rate) - 5, rate.toLocaleString('en'))}`;
  })];
});
const legend = counts.map((servers, index) => `<rect x="${LEFT + index * 100}" y="34" width="10" height="10" fill="${COLORS[servers]}"/>${label(LEFT + 16 + index * 100, 43, `${servers} server${servers > 1 ? 's' : ''}`, 'start')}`);
const title = label(LEFT, 20, `Complete jobs per second: servers, PostgreSQL and 64 agents on one machine with ${availableParallelism()} cores`, 'start', ' font-weight="600"');

writeFileSync(fileURLToPath(new URL('../../docs/throughput.svg', import.meta.url)), `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="#18181b">
<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
${[title, ...legend, ...grid, ...bars].join('\n')}
</svg>
`);
