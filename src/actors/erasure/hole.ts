import { createRedaction } from '../../events/redaction.ts';
import { ERASED_WORDS, type Event, type EventId } from '../../events/index.ts';
import type { PersonsWords } from './erased-words.ts';

const everything = createRedaction(
  () => ERASED_WORDS,
  () => undefined,
);

/** Fields with values other than text, numbers for example, and their replacement. */
const WITHOUT_VALUES: Readonly<Record<string, unknown>> = { args: '{}', data: undefined };

/**
 * The erased form of an event without any words: it keeps author, time, recipients, kind and the ids to which it refers. Null
 * if the event has no words.
 */
export function emptied(event: Event, erasure: EventId, person: string): Event | null {
  const { forTools: _forTools, attachments: _attachments, reply: _reply, ...context } = event.context ?? {};
  const left = {
    ...event,
    author: authorWithout(event, person),
    body: withoutValues(everything.body(event.body, event)),
    ...(event.context && { context }),
  } as Event;
  return JSON.stringify(left) === JSON.stringify(event) ? null : { ...left, erased: erasure };
}

function authorWithout({ author }: Event, person: string): Event['author'] {
  return author.kind === 'user' && author.id === person ? { ...author, name: author.id } : author;
}

function withoutValues(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutValues);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, part]) => {
      if (!Object.hasOwn(WITHOUT_VALUES, key)) return [[key, withoutValues(part)]];
      return WITHOUT_VALUES[key] === undefined ? [] : [[key, WITHOUT_VALUES[key]]];
    }),
  );
}

/** The event without the person's words that it repeats; null if it repeats none. */
export function masked(event: Event, erasure: EventId, mask: (text: string) => string): Event | null {
  const body = createRedaction(mask, () => undefined).body(event.body, event);
  if (JSON.stringify(body) === JSON.stringify(event.body)) return null;
  return { ...event, body, erased: erasure } as Event;
}

/** Calls `visit` with every text of an event's body. */
export function eachText(event: Event, visit: (text: string) => void): void {
  const reading = createRedaction(
    (text) => {
      visit(text);
      return text;
    },
    () => undefined,
  );
  reading.body(event.body, event);
}

/** JSON with its texts masked; text that is not JSON is masked as a whole. The same text if nothing is masked. */
export function maskedJson(text: string, mask: PersonsWords['mask']): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return mask(text);
  }
  const made = JSON.stringify(maskedValue(value, mask));
  return made === JSON.stringify(value) ? text : made;
}

function maskedValue(value: unknown, mask: PersonsWords['mask']): unknown {
  if (typeof value === 'string') return mask(value);
  if (Array.isArray(value)) return value.map((each) => maskedValue(each, mask));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, maskedValue(part, mask)]));
}
