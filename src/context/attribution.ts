import type { AgentId, Author, Event } from '../events/index.ts';
import { escapeFences, escapeHeaders, fence } from './fence.ts';
import { fenceKey } from './hash.ts';

/** Who reads, under which secret, and which people have spoken so far. */
export interface Reader {
  agent: AgentId;
  secret: string;
  /** Display names of the people seen up to here; from the second on, their lines are prefixed. */
  people: ReadonlySet<string>;
}

/** A name as it may stand in a header: one line, no brackets, and no '@', which marks agents alone. */
export function displayName(author: Author): string {
  const name = author.name
    .replace(/[\p{Cc}\p{Cf}[\]]/gu, '')
    .replace(/^@+/, '')
    .trim()
    .slice(0, 64);
  return name || author.id.slice(0, 8);
}

function recipients(event: Event): string {
  return event.to.map((agent) => `@${agent}`).join(', ');
}

/** The line of attribution, or null where the text stands bare: the one human, to me or to all. */
export function headerOf(event: Event, reader: Reader): string | null {
  const toOthers = event.to.length > 0 && !event.to.includes(reader.agent);
  const target = toOthers ? ` -> ${recipients(event)}` : '';
  switch (event.author.kind) {
    case 'agent':
      return `[@${event.author.id}${target}]`;
    case 'system':
      return `[system${target}]`;
    case 'user':
      return toOthers || reader.people.size > 1 ? `[${displayName(event.author)}${target}]` : null;
  }
}

/** A header that is always there, for lists: a human speaking to the reader among others is named too. */
export function listHeader(event: Event): string {
  const target = event.to.length > 0 ? ` -> ${recipients(event)}` : '';
  if (event.author.kind === 'agent') return `[@${event.author.id}${target}]`;
  if (event.author.kind === 'system') return `[system${target}]`;
  return `[${displayName(event.author)}${target}]`;
}

/** One event of somebody else as the text of a user message. Only the fence says where an agent's words end. */
export function renderOther(event: Event, text: string, reader: Reader): string {
  const header = headerOf(event, reader);
  if (event.author.kind !== 'user') {
    return `${header}\n${fence('msg', fenceKey(reader.secret, `${event.seq}`), escapeFences(text))}`;
  }
  const body = escapeHeaders(text, reader.people);
  return header === null ? body : `${header} ${body}`;
}
