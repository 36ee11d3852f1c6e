import type { InboxLine } from '../../../src/http/inbox.ts';
import { nameOf } from './selection.ts';

/** Conversations that are in their state for the same reason. */
export interface Cause {
  key: string;
  /** Number and reason, such as `21 × provider_auth of Billing`. */
  words: string;
  /** The vendor's message, or the tool that waits for approval. */
  detail: string;
  lines: InboxLine[];
}

/**
 * Groups lines by cause, the most frequent cause of failures first. Other groups stand where their first line was, and what
 * expires first stands alone before them.
 */
export function byCause(lines: readonly InboxLine[]): Cause[] {
  const [first, ...others] = lines;
  if (first?.asks?.deadline) return [alone(first), ...grouped(others)];
  return grouped(lines).toSorted((a, b) => failures(b) - failures(a));
}

const failures = ({ lines }: Cause) => (lines[0]?.state === 'failed' ? lines.length : 0);

function grouped(lines: readonly InboxLine[]): Cause[] {
  return [...Map.groupBy(lines, causeOf)].map(([key, own]) => ({ key, lines: own, ...wordsOf(own) }));
}

/** A group of one line. */
export const alone = (line: InboxLine): Cause => ({ key: line.id, words: '', detail: '', lines: [line] });

function causeOf({ id, state, failure, asks }: InboxLine): string {
  if (state === 'failed' && failure)
    return JSON.stringify([failure.agent, failure.code, general(failure.message)]);
  if (state === 'asks' && asks?.kind === 'approval')
    return JSON.stringify([asks.agent, asks.text.split(' ', 1)[0]]);
  return id;
}

/** Removes ids, numbers and quoted names, which differ between failures with the same cause. */
function general(message: string): string {
  return message.replace(/\d+|"[^"]*"/g, '…');
}

function wordsOf(lines: readonly InboxLine[]): Pick<Cause, 'words' | 'detail'> {
  const [first] = lines;
  if (first?.state === 'failed' && first.failure) {
    const { agent, code, message } = first.failure;
    return { words: `${lines.length} × ${code} of ${nameOf(agent)}`, detail: message };
  }
  const { agent = '', text = '' } = first?.asks ?? {};
  return { words: `${lines.length} × ${nameOf(agent)} wants to run ${text.split(' ', 1)[0]}`, detail: '' };
}
