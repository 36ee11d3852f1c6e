import type { Event, Saying } from '../../events/index.ts';
import { agentLabel, type People, personLabel } from '../people.ts';
import { AT_THE_END } from '../summary/speakers.ts';
import { isStranger, type Trusted } from '../trusted.ts';

/** Words with their speaker; a text alone is of a log from before speakers were kept. */
export type Entry = string | Saying;

/** In the order of first appearance, nothing of one speaker twice. */
export type Sayings = Map<string, Entry>;

/** A log without end must not make a list without end: the oldest goes. */
const MOST_ENTRIES = 1_000;

export function sayingsOf(entries: readonly Entry[] = []): Sayings {
  return new Map(entries.map((entry) => [keyOf(entry), entry]));
}

export function addSaying(list: Sayings, entry: Entry): void {
  if (wordsOf(entry) === '') return;
  const key = keyOf(entry);
  if (list.has(key)) return;
  list.set(key, entry);
  if (list.size <= MOST_ENTRIES) return;
  const [oldest = ''] = list.keys();
  list.delete(oldest);
}

export function wordsOf(entry: Entry): string {
  return typeof entry === 'string' ? entry : entry.text;
}

/** Whose words an event brings. */
export function speakerOfEvent(event: Event, trusted: Trusted): Omit<Saying, 'text'> {
  const { kind, id, name } = event.author;
  return { by: { kind, id, name }, ...(isStranger(trusted, event) && { untrusted: true }) };
}

/** Who says it, as in a header: `Ana`, `@bo -> @cy`, `Eve, not trusted`; tools are behind an `@`, where no person can be. */
export function labelOf({ by, untrusted, asks = [] }: Saying, people: People): string {
  const target = asks.length === 0 ? '' : ` -> ${asks.map((agent) => `@${agent}`).join(', ')}`;
  return `${nameOf(by, people)}${untrusted ? ', not trusted' : ''}${target}`;
}

function nameOf({ kind, id, name }: Saying['by'], people: People): string {
  switch (kind) {
    case 'tool':
      return `@tool ${name.replace(/[^\p{L}\p{N}_.:/-]/gu, '_').slice(0, 64)}`;
    case 'agent':
      return `@${agentLabel(id)}`;
    case 'system':
      return 'system';
    case 'user':
      return personLabel(people, { kind, id, name }, AT_THE_END);
  }
}

function keyOf(entry: Entry): string {
  if (typeof entry === 'string') return `\n${entry}`;
  const { by, asks, text } = entry;
  return `${by.kind} ${by.id} ${asks?.join() ?? ''}\n${text}`;
}
