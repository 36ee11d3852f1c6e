/** `{working: 'streaming'}` as `working.streaming`. */
export function pathOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Object.entries(value as Record<string, unknown>)
    .map(([parent, child]) => `${parent}.${pathOf(child)}`)
    .join(' ');
}
