import { hash } from 'node:crypto';
import type { ConversationKey } from '../../store/store.ts';

/** Raised when the text below, or the fold of the same events, changes: checkpoints of another version are not read. */
export const FORMAT = 1;

/** What a checkpoint was made of. Another mark at its place is another log. */
export interface CheckpointOrigin {
  log: ConversationKey;
  /** What it is a fold for: an actor, for example. */
  subject: string;
  /** The last event in it. */
  seq: number;
  /** The store's mark of the event at `seq`. */
  mark: string;
}

/** `other`: of another version, and left to it. `damaged`: of no use to anybody. */
export type ReadText = { kind: 'read'; mark: string; lines: string[] } | { kind: 'other' | 'damaged' };

/**
 * The text of a checkpoint: a line with the version, a line with the hash of the others, a line with its origin, and the
 * packed parts of the fold, a line each. `release` is that of the code.
 */
export function writeText(
  release: string,
  { log, subject, seq, mark }: CheckpointOrigin,
  lines: readonly string[],
): string {
  const origin = JSON.stringify([log.tenant, log.conversation, subject, seq, mark]);
  const rest = `${[origin, ...lines].join('\n')}`;
  const version = versionLine(release);
  return `${version}\n${hashOf(version, rest)}\n${rest}`;
}

/** Never throws. */
export function readText(
  release: string,
  { log, subject, seq }: Omit<CheckpointOrigin, 'mark'>,
  text: string,
): ReadText {
  const first = text.indexOf('\n');
  const second = text.indexOf('\n', first + 1);
  const third = text.indexOf('\n', second + 1);
  if (first < 0 || second < 0 || third < 0) return { kind: 'damaged' };
  const hashed = hashOf(text.slice(0, first), text.slice(second + 1));
  if (hashed !== text.slice(first + 1, second)) return { kind: 'damaged' };
  if (text.slice(0, first) !== versionLine(release)) return { kind: 'other' };
  try {
    const [tenant, conversation, of, at, mark] = JSON.parse(text.slice(second + 1, third)) as unknown[];
    const isThis = tenant === log.tenant && conversation === log.conversation && of === subject && at === seq;
    if (!isThis || typeof mark !== 'string') return { kind: 'damaged' };
    return {
      kind: 'read',
      mark,
      lines: text.slice(third + 1).split('\n'),
    };
  } catch {
    // The hash is no signature: whoever wrote this made it fit.
    return { kind: 'damaged' };
  }
}

function hashOf(version: string, rest: string): string {
  return hash('sha256', `${version}\n${rest}`, 'hex');
}

function versionLine(release: string): string {
  return `troupe checkpoint ${FORMAT} of ${release}`;
}
