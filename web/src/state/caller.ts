import { signal } from '@preact/signals';
import type { Command } from '../../../src/events/index.ts';
import type { Scope } from '../../../src/library/access/index.ts';
import { api, type Caller } from './api.ts';
import { mode } from './settings.ts';

const known = signal<Caller | null>(null);

/** Who uses the page. Null until the server has answered: until then nothing is offered that needs a right. */
export function caller(): Caller | null {
  if (known.value === null)
    api.whoami().then(
      (answer) => (known.value = answer),
      // A later call asks again.
      () => {},
    );
  return known.value;
}

/** Commands that need `write`; all others need `operate`. */
const ANSWERS = new Set<Command['command']>(['answer', 'decide', 'cancelTask']);

/** Whether the user's key may give such a command. True until the server has answered otherwise. */
export function mayGive(command: Command['command']): boolean {
  return maySay(ANSWERS.has(command) ? 'write' : 'operate');
}

export function maySay(scope: Scope): boolean {
  return caller()?.scopes.includes(scope) ?? true;
}

/** A key for certain conversations may erase nothing, because a person may have spoken in any conversation. */
export function canErase(): boolean {
  if (mode === 'read-only') return false;
  const found = caller();
  return found?.conversations === null && found.scopes.includes('erase');
}
