import type { Provider } from './troupe.ts';

/** By its shape: a program may bring any value. */
export function isProvider(value: unknown): value is Provider {
  const { capabilities, stream } = Object(value) as { [field in keyof Provider]?: unknown };
  return typeof stream === 'function' && typeof capabilities === 'object' && capabilities !== null;
}
