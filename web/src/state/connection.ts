import { computed, signal } from '@preact/signals';
import { messageOf } from '../shared/format.ts';
import { ApiError } from './api.ts';
import { mode } from './settings.ts';

/**
 * The state of the connection. Only the functions of this file change it. The stream of an open conversation calls them, or
 * the list of conversations if none is open.
 *  C1  `lost` keeps the time of the first failure until the server has answered again.
 *  C2  `heardAt` is when the server was last heard: the content of the page is as old as that.
 */
export type Connection =
  | { state: 'opening' }
  | { state: 'live' }
  /** The server does not respond; the page keeps trying. */
  | { state: 'lost'; since: number; heardAt: number | null; message: string }
  /** The conversation does not exist. */
  | { state: 'gone'; message: string }
  /** A key is needed. `isKnown`: the given one is valid, but has no right to read. */
  | { state: 'token'; message: string; isKnown: boolean };

const current = signal<Connection>({ state: 'opening' });
let heardAt: number | null = null;

export const connection = computed(() => current.value);
export const isLost = computed(() => current.value.state === 'lost');

/** Called when another conversation is opened, or none. A lost connection stays lost. */
export function opening(): void {
  if (current.peek().state !== 'lost') current.value = { state: 'opening' };
}

/** Called when the server was heard. */
export function reached(): void {
  heardAt = Date.now();
  if (current.peek().state !== 'live') current.value = { state: 'live' };
}

/** Called when a request has failed. Returns whether trying again may help. */
export function failed(error: unknown): boolean {
  const message = messageOf(error);
  const status = error instanceof ApiError ? error.status : 0;
  const isKnown = error instanceof ApiError && error.code === 'scope_missing';
  if (status === 401 || isKnown) current.value = { state: 'token', message, isKnown };
  else if (status === 404) current.value = { state: 'gone', message };
  else {
    const known = current.peek();
    const since = known.state === 'lost' ? known.since : Date.now();
    current.value = { state: 'lost', since, heardAt, message };
    return true;
  }
  return false;
}

export const READ_ONLY = 'This server was started with --read-only';

/** Why nothing can be changed now. Null if changes are possible. */
export const whyNoWrite = computed(() => {
  if (mode === 'read-only') return READ_ONLY;
  return isLost.value ? 'Not connected to the server' : null;
});
