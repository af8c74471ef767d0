// Statistics and output of benchmarks.

/** Returns the quantile of `values` at `part`, from 0 to 1. */
export const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(values.length * part) - 1)];
export const millis = (value) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

/** Prints a figure: `parts` are [name, value, formatter, optional target, 'least' if the target is a minimum]. */
export function figure(subject, parts, method) {
  const formatted = parts.map(([name, value, unit, target, least]) => {
    const missed = target !== undefined && (least ? value < target : value > target);
    const goal = target === undefined ? '' : ` (target ${least ? '>=' : '<='} ${unit(target)}${missed ? ', MISSED' : ''})`;
    return `${name ? `${name} ` : ''}${unit(value)}${goal}`;
  });
  console.log(`${subject}: ${formatted.join(', ')}; ${method}`);
}
