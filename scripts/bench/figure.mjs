// How a figure is told.

/** The value below which so much of them lies. */
export const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(values.length * part) - 1)];
export const millis = (value) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

/** Prints a figure: `parts` are [name, value, unit printer, target if any, 'least' if the target is the least]. */
export function figure(what, parts, how) {
  const told = parts.map(([name, value, unit, target, least]) => {
    const missed = target !== undefined && (least ? value < target : value > target);
    const goal = target === undefined ? '' : ` (target ${least ? '>=' : '<='} ${unit(target)}${missed ? ', MISSED' : ''})`;
    return `${name ? `${name} ` : ''}${unit(value)}${goal}`;
  });
  console.log(`${what}: ${told.join(', ')}; ${how}`);
}
