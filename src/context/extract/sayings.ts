import type { Event, Saying } from '../../events/index.ts';
import { agentLabel, isUntrusted, type People, personLabel, type Trusted } from '../people.ts';
import { AT_THE_END } from '../summary/speakers.ts';
import { equalPart } from './spoken-text.ts';

/** In order of first appearance, without duplicates per speaker. */
export type Sayings = Map<string, Saying>;

/** Bounds a list: at the first number of entries it is cut to the second. */
const MOST_ENTRIES = 1_000;
const KEPT_ENTRIES = 500;

export function sayingsOf(entries: readonly Saying[] = []): Sayings {
  return new Map(entries.map((entry) => [keyOf(entry), entry]));
}

export function addSaying(list: Sayings, entry: Saying): void {
  if (entry.text === '') return;
  const key = keyOf(entry);
  if (list.has(key)) return;
  list.set(key, entry);
  if (list.size > MOST_ENTRIES) cut(list);
}

/** Removes the oldest entries of those who have the most, so that one author's flood leaves the others their words. */
function cut(list: Sayings): void {
  const sizes = new Map<string, number>();
  for (const entry of list.values()) sizes.set(authorOf(entry), (sizes.get(authorOf(entry)) ?? 0) + 1);
  const part = equalPart([...sizes.values()], KEPT_ENTRIES);
  for (const [key, entry] of list) {
    const author = authorOf(entry);
    const size = sizes.get(author) ?? 0;
    if (size <= part) continue;
    list.delete(key);
    sizes.set(author, size - 1);
  }
}

/** Key of an entry's author. */
export function authorOf({ by }: Saying): string {
  return `${by.kind} ${by.id}`;
}

/** The speaker of an event. */
export function speakerOfEvent(event: Event, trusted: Trusted): Omit<Saying, 'text'> {
  const { kind, id, name } = event.author;
  return { by: { kind, id, name }, ...(isUntrusted(trusted, event) && { untrusted: true }) };
}

/** The speaker as in a header: `Ana`, `@bo -> @cy`, `Eve, not trusted`. Tools begin with '@', as no person can. */
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

export function keyOf(entry: Saying): string {
  const { asks, text } = entry;
  return `${authorOf(entry)} ${asks?.join() ?? ''}\n${text}`;
}
