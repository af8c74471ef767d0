// The progress of a job on a terminal: one line that is redrawn; if the output is not a
// terminal, a line from time to time.

/** "running  ██████░░░░  60 %  step 60/100  loss 0.123  12 s left" */
function describe(job, barWidth) {
  const { percent, step, total_steps: total, loss, eta_seconds: eta } = job.progress ?? {};
  const parts = [job.status.padEnd(10)];
  if (percent != null) {
    const full = Math.round((Math.min(percent, 100) / 100) * barWidth);
    if (barWidth > 0) parts.push('█'.repeat(full) + '░'.repeat(barWidth - full));
    parts.push(`${percent.toFixed(0).padStart(3)} %`);
  }
  if (step != null) parts.push(`step ${step}${total == null ? '' : `/${total}`}`);
  if (loss != null) parts.push(`loss ${Number(loss).toPrecision(3)}`);
  if (eta != null) parts.push(`${duration(eta)} left`);
  return parts.join('  ');
}

function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  return s < 100 ? `${s} s` : `${Math.floor(s / 60)} min ${s % 60} s`;
}

export function progressBar(out = process.stdout) {
  let lastKey = ''; // without a terminal: the last reported state and tenth of the progress
  return {
    show(job) {
      if (out.isTTY) {
        const columns = out.columns || 80;
        out.write(`\r\x1b[K${describe(job, columns > 90 ? 30 : 10).slice(0, columns - 1)}`);
        return;
      }
      const key = `${job.status} ${Math.floor((job.progress?.percent ?? 0) / 10)}`;
      if (key !== lastKey) out.write(`${describe(job, 0)}\n`);
      lastKey = key;
    },
    end() {
      if (out.isTTY) out.write('\n');
    },
  };
}
