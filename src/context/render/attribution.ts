import type { Event } from '../../events/index.ts';
import { escapeMarks, fenceEnds } from '../fence.ts';
import { frame, type Framed } from '../slot.ts';
import { fenceKey } from '../hash.ts';
import { agentLabel, isPerson, personLabel, hasSeveralPeople } from '../people.ts';
import type { View } from '../view.ts';

/** The reader of a prompt, and what was known of the other speakers when the prompt was made. */
export interface Reader {
  view: Pick<View, 'agent' | 'secret' | 'people' | 'rendering'>;
  upTo: number;
  /** Whether several people speak. From then on new lines carry their names. */
  named: boolean;
  rendering: number;
}

export function readerAt(view: Reader['view'], upTo: number): Reader {
  return { view, upTo, named: hasSeveralPeople(view.people, upTo), rendering: view.rendering };
}

function target(event: Event): string {
  return event.to.length === 0 ? '' : ` -> ${event.to.map((agent) => `@${agent}`).join(', ')}`;
}

function speaker({ author }: Event, { view, upTo, rendering }: Reader): string {
  if (author.kind === 'agent') return `@${agentLabel(author.id)}`;
  return author.kind === 'system' ? 'system' : personLabel(view.people, author, upTo, rendering);
}

/**
 * The line of attribution. Null where the text stands without one: the only human, speaking to this agent or to all.
 */
function headerOf(event: Event, reader: Reader): string | null {
  const toOthers = event.to.length > 0 && !event.to.includes(reader.view.agent);
  if (event.author.kind === 'user' && !toOthers && !reader.named) return null;
  return `[${speaker(event, reader)}${toOthers ? target(event) : ''}]`;
}

/** A header for lists: always present, with all recipients. */
export function listHeader(event: Event, reader: Reader): string {
  return `[${speaker(event, reader)}${target(event)}]`;
}

export function fenceText(event: Event, text: string, { view }: Reader, head = ''): Framed {
  const [open, close] = fenceEnds('msg', fenceKey(view.secret, `${event.seq}`));
  return frame(head + open, escapeMarks(text), close);
}

/**
 * Matches names of people who have not spoken yet, too: once they have, this text is read beside their own lines.
 * Attachment lines are not names; see `messageText`.
 */
const MAY_BE_NAME = /^(?!(?:image|file|text): )(?=\P{L}*\p{L}.*\p{L})[^"{}=;|]+$/u;

/** Another author's event as the text of a user message. Only the fence marks the end of an agent's words. */
export function renderOther(event: Event, text: string, reader: Reader, head = ''): Framed {
  const header = headerOf(event, reader);
  if (event.author.kind !== 'user') return fenceText(event, text, reader, `${head}${header}\n`);
  const { view, upTo, rendering } = reader;
  const body = escapeMarks(
    text,
    (name) => MAY_BE_NAME.test(name) || isPerson(view.people, name, upTo, rendering),
  );
  return frame(header === null ? head : `${head}${header} `, body);
}
