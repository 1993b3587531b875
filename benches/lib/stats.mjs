// Medians and spreads.

/** The value below which this part of the values lies. */
export function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (above - below) * (place - Math.floor(place));
}

export const median = (values) => quantile(values, 0.5);

/** A median with the range that holds eight of ten values. */
export const summary = (values) => ({
  median: median(values),
  low: quantile(values, 0.1),
  high: quantile(values, 0.9),
});
