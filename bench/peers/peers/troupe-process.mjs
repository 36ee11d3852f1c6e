import { open as openTroupe } from './troupe.mjs';

/** Troupe that, like the others, does not wait for the disk. */
export function open(dir) {
  return openTroupe(dir, { durability: 'process' });
}
