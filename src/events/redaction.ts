import type { Author, EventDraft } from './event.ts';
import type { EventKind } from './kinds.ts';
import type { OutgoingEvent } from './actor-record.ts';
import { isExactInteger, parseExact } from './json.ts';

/** Place of a text: the kind of its event, and the author. */
export interface TextPlace {
  /** Kind of the event. */
  kind: EventKind;
  /** Who speaks. */
  author: Author;
}

/**
 * The application's redaction, applied to every text before it is stored. It must depend on its arguments alone: a
 * message that is sent twice must give the same result, or the second is refused as a different message. It must leave
 * its own results unchanged, because a text may pass more than once on its way into the log.
 */
export type RedactText = (text: string, where: TextPlace) => string;

/** Applies `RedactText` to everything that is written: drafts, the arguments of calls, records of actors. */
export interface Redaction {
  text(text: string, where: TextPlace): string;
  /** Redacts the arguments of a call text by text, so that they stay JSON. */
  json(text: string, where: TextPlace): string;
  /** Redacts the body of an event, or a part of one. */
  body<B>(body: B, where: TextPlace): B;
  draft<D extends EventDraft>(draft: D): D;
  /** Redacts the events of timers, which an actor record keeps. */
  posts(posts: readonly OutgoingEvent[]): OutgoingEvent[];
}

/** Replaces a text whose redaction failed. The text must not be stored, and the turn goes on. */
const NOT_KEPT = '[not kept: its redaction failed]';

/** Keys of event bodies that hold ids, names and enumerations. Every other key holds text. */
const NO_TEXT = new Set(
  [
    'agent argsHash artifact assignee baseline by call chain change code command compaction completeWhen conversation cut',
    'delegation delegator event events forgotten framing group guard hash home how id join kind mediaType memories mode model',
    'name outcome parts peers pinned policy provider pruned question request root run sees session signature status strategy thread',
    'told tool tools tree turn type workflow',
  ].flatMap((line) => line.split(' ')),
);
/** Keys that hold text in these kinds alone; in all others they hold words of the runtime. */
const TEXT_IN: ReadonlyMap<string, readonly EventKind[]> = new Map([
  ['reason', ['membership.changed', 'command', 'run.directive']],
  ['phase', ['phase.changed', 'command', 'run.directive']],
]);
/** Everything below these keys is text. */
const FREE = new Set(['data', 'live']);

export function createRedaction(
  redact: RedactText,
  onWarning: (error: unknown, where: string) => void,
): Redaction {
  const text = withoutFailures(redact, onWarning);

  function free(value: unknown, where: TextPlace): unknown {
    if (typeof value === 'string') return text(value, where);
    if (Array.isArray(value)) return value.map((each) => free(each, where));
    if (typeof value !== 'object' || value === null || isExactInteger(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [text(key, where), free(part, where)]),
    );
  }

  function json(given: string, where: TextPlace): string {
    let value: unknown;
    try {
      value = parseExact(given);
    } catch {
      // A model may write arguments that are not JSON; the tool refuses them.
      return text(given, where);
    }
    const made = JSON.stringify(free(value, where));
    // If nothing is hidden, the model's own bytes stay, so that a replay sends the same.
    return made === JSON.stringify(value) ? given : made;
  }

  function part(value: unknown, key: string, where: TextPlace): unknown {
    if (typeof value === 'string') {
      if (key === 'args') return json(value, where);
      const isText = TEXT_IN.get(key)?.includes(where.kind) ?? !NO_TEXT.has(key);
      return isText ? text(value, where) : value;
    }
    if (FREE.has(key)) return key === 'live' ? values(value, where) : free(value, where);
    if (Array.isArray(value)) return value.map((each) => part(each, key, where));
    if (typeof value !== 'object' || value === null) return value;
    const made = Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, part(each, name, where)]),
    );
    // The name of a file is text; names of tools and layers are not.
    if (typeof made['name'] === 'string' && 'mediaType' in made)
      made['name'] = text(made['name'], where).slice(0, 255);
    // A signature belongs to the original words. The vendor refuses a request that has it with others.
    if (isOtherReasoning(value, made, where)) delete made['signature'];
    return made;
  }

  /** True if the words or the signature changed: some vendors put the words into the signature too. */
  function isOtherReasoning(given: object, made: Record<string, unknown>, where: TextPlace): boolean {
    const { signature } = made;
    if (typeof signature !== 'string' || !('text' in given)) return false;
    return made['text'] !== given.text || text(signature, where) !== signature;
  }

  /** Redacts the items of a turn but not their names, which are the runtime's. */
  function values(items: unknown, where: TextPlace): unknown {
    if (typeof items !== 'object' || items === null) return items;
    return Object.fromEntries(Object.entries(items).map(([name, item]) => [name, free(item, where)]));
  }

  function body<B>(given: B, where: TextPlace): B {
    return part(given, '', where) as B;
  }

  function draft<D extends EventDraft>(given: D): D {
    return { ...given, body: body(given.body, given) };
  }

  function posts(given: readonly OutgoingEvent[]): OutgoingEvent[] {
    return given.map((each) => ({ ...each, draft: draft(each.draft) }));
  }

  return { text, json, body, draft, posts };
}

/** Never throws: a text whose redaction fails is replaced as a whole. */
function withoutFailures(
  redact: RedactText,
  onWarning: (error: unknown, where: string) => void,
): Redaction['text'] {
  return (given, where) => {
    try {
      // Applications in JavaScript may return anything.
      const made: unknown = given === '' ? '' : redact(given, where);
      if (typeof made === 'string') return made.toWellFormed();
      onWarning(new TypeError(`it returned ${typeof made}, not a string`), 'redact');
    } catch (error) {
      onWarning(error, 'redact');
    }
    return NOT_KEPT;
  };
}
