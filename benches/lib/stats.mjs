// Medians and spreads.

/** Returns the value below which this part of the values lies. */
export function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  const position = (sorted.length - 1) * part;
  const [below, above] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]];
  return below + (above - below) * (position - Math.floor(position));
}

export const median = (values) => quantile(values, 0.5);

/** Returns the median and the range from the 10th to the 90th percentile. */
export const summary = (values) => ({
  median: median(values),
  low: quantile(values, 0.1),
  high: quantile(values, 0.9),
});
