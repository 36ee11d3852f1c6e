import { TroupeError } from '../errors.ts';
import type { Reasoning, ToolCall } from '../events/index.ts';
import { mintCallId } from './call-text.ts';
import type { ModelRequest } from './provider.ts';

const MAX_NAME_LENGTH = 256;

/** The reasoning, if it is one: servers are believed in nothing. Throws `provider_invalid_reply`. */
export function soundReasoning(reasoning: Reasoning): Reasoning {
  const { text, signature } = reasoning;
  if (typeof text !== 'string') throw unsound('reasoning', text);
  if (signature !== undefined && typeof signature !== 'string') throw unsound('a signature', signature);
  return reasoning;
}

export function soundText(delta: unknown): string {
  if (typeof delta !== 'string') throw unsound('text', delta);
  return delta;
}

/** With an id and a name, as events hold them. `index`: which call of the answer it is. */
export function soundCall({ id, name, args }: ToolCall, { trace }: ModelRequest, index: number): ToolCall {
  if (typeof args !== 'string') throw unsound('the arguments of a call', args);
  return { id: nameOf(id) || mintCallId(trace, index), name: nameOf(name) || 'unknown', args };
}

function nameOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_NAME_LENGTH) : '';
}

function unsound(what: string, value: unknown): TroupeError {
  const kind = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value;
  return new TroupeError('provider_invalid_reply', `${what} in the answer is ${kind}, and no text`);
}
