import { signal } from '@preact/signals';
import type { Command } from '../../../src/events/index.ts';
import type { Scope } from '../../../src/library/access/index.ts';
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

/** Commands that need `write`; all others need `operate`. */
const ANSWERS = new Set<Command['command']>(['answer', 'decide', 'cancelTask']);

/** Whether the key of the user may give such a command. It may until the server has said that it may not. */
export function mayGive(command: Command['command']): boolean {
  return maySay(ANSWERS.has(command) ? 'write' : 'operate');
}

export function maySay(scope: Scope): boolean {
  return caller()?.scopes.includes(scope) ?? true;
}

/** A person may have spoken anywhere, so a key for certain conversations erases nothing. */
export function canErase(): boolean {
  if (mode === 'read-only') return false;
  const found = caller();
  return found?.conversations === null && found.scopes.includes('erase');
}
