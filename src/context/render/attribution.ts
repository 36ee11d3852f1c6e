import type { Event } from '../../events/index.ts';
import { agentLabel, hasSeveralPeople, isPerson, personLabel, systemLabel } from '../people.ts';
import type { View } from '../view.ts';

/** The reader of a prompt, and what was known of the other speakers when the prompt was made. */
export interface Reader {
  view: Pick<View, 'agent' | 'secret' | 'people' | 'peers' | 'framing'>;
  upTo: number;
  /** Whether several people speak. From then on new lines carry their names. */
  named: boolean;
  /** What each person is called, by id and name: the same for all events up to `upTo`. */
  labels: Map<string, string>;
}

export function readerAt(view: Reader['view'], upTo: number): Reader {
  return { view, upTo, named: hasSeveralPeople(view.people, upTo), labels: new Map() };
}

function target(event: Event): string {
  if (event.to.length === 0) return '';
  return `>${event.to.map((agent) => `@${agentLabel(agent)}`).join(', ')}`;
}

/** The label of the only recipient in a label; null for none or several. */
export function recipientIn(label: string): string | null {
  const at = label.indexOf('>');
  return at === -1 || label.includes(',', at) ? null : label.slice(at + 1);
}

function speaker(event: Event, { view, upTo, labels }: Reader): string {
  const { author } = event;
  if (author.kind === 'agent') return `@${agentLabel(author.id)}`;
  if (author.kind === 'system') return systemLabel(event);
  const key = `${author.id}\n${author.name}`;
  const known = labels.get(key);
  if (known !== undefined) return known;
  const label = personLabel(view.people, author, upTo);
  labels.set(key, label);
  return label;
}

/**
 * Who speaks, and to whom if that is not the reader. Null where the text stands without a name: the only human,
 * speaking to this agent or to all.
 */
export function labelOf(event: Event, reader: Reader): string | null {
  const toOthers = event.to.length > 0 && !event.to.includes(reader.view.agent);
  if (event.author.kind === 'user' && !toOthers && !reader.named) return null;
  return `${speaker(event, reader)}${toOthers ? target(event) : ''}`;
}

/** A label for lists: always present, with all recipients. */
export function listLabel(event: Event, reader: Reader): string {
  return `${speaker(event, reader)}${target(event)}`;
}

/**
 * Matches names of people who have not spoken yet, too: once they have, this text is read beside their own lines.
 * Attachment lines are not names; see `messageText`.
 */
const MAY_BE_NAME = /^(?!(?:image|file|text): )(?=\P{L}*\p{L}.*\p{L})[^"{}=;|]+$/u;

/** Whether a text in brackets would read as a name where names of people are shown. */
export function nameTest({ view, upTo }: Reader): (name: string) => boolean {
  return (name) => MAY_BE_NAME.test(name) || isPerson(view.people, name, upTo);
}
