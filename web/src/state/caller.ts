import { signal } from '@preact/signals';
import { api, type Caller } from './api.ts';
import { mode } from './settings.ts';

const known = signal<Caller | null>(null);

/** Who uses the page. Null until the server has said it: what a key may do is not offered before. */
export function caller(): Caller | null {
  if (known.value === null)
    api.whoami().then(
      (answer) => (known.value = answer),
      // The next look asks again.
      () => {},
    );
  return known.value;
}

/** A person may have spoken anywhere, so a key for certain conversations erases nothing. */
export function canErase(): boolean {
  if (mode === 'read-only') return false;
  const found = caller();
  return found?.conversations === null && found.scopes.includes('erase');
}
