/** A figure for a table: three digits or more. */
export function shown(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return 'failed';
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(value >= 10 ? 1 : 2);
}
