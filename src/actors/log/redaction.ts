import type { Author, EventDraft, EventKind } from '../../events/index.ts';
import type { ActorPatch } from '../../store/store.ts';

/** Where a text stands, or is about to: the event's kind, and who says it. */
export interface TextPlace {
  kind: EventKind;
  author: Author;
}

/**
 * What an application makes of every text before anything is stored. A function of its arguments alone: a message that is
 * sent twice must come out the same, or the second is refused as another one. What it gives it must give back unchanged,
 * since a text may pass more than once on its way into the log.
 */
export type RedactText = (text: string, where: TextPlace) => string;

/** `RedactText` for what is written: drafts, the arguments of calls, records of actors. */
export interface Redaction {
  text(text: string, where: TextPlace): string;
  /** Arguments of a call, of which each text is redacted for itself, so that they stay JSON. */
  json(text: string, where: TextPlace): string;
  /** What is, or will be, the body of an event, or a part of one. */
  body<B>(body: B, where: TextPlace): B;
  draft<D extends EventDraft>(draft: D): D;
  patch(patch: ActorPatch): ActorPatch;
}

/** Stands for a text whose redaction has failed: it must not be stored as it is, and the turn goes on. */
const NOT_KEPT = '[not kept: its redaction failed]';

/** Ids, names and enumerations of event bodies. Whatever is not named here is text. */
const NO_TEXT = new Set(
  [
    'agent argsHash artifact assignee baseline by call chain code command compaction completeWhen cut delegation',
    'delegator event events forgotten group guard hash home how id join mediaType memories mode model name outcome',
    'policy provider pruned question request root run session signature status strategy thread tool tree turn type workflow',
  ].flatMap((line) => line.split(' ')),
);
/** A word of ours in all other kinds. */
const REASON_IS_TEXT: readonly EventKind[] = ['left', 'archived', 'reopened', 'run.directive'];
/** Under these keys everything is text, whatever the keys below them. */
const FREE = new Set(['data', 'live']);

export function createRedaction(
  redact: RedactText,
  onWarning: (error: unknown, where: string) => void,
): Redaction {
  function text(given: string, where: TextPlace): string {
    try {
      // It is also written in JavaScript.
      const made: unknown = given === '' ? '' : redact(given, where);
      if (typeof made === 'string') return made.toWellFormed();
      onWarning(new TypeError(`it gave ${typeof made}, not a text`), 'redact');
    } catch (error) {
      onWarning(error, 'redact');
    }
    return NOT_KEPT;
  }

  function free(value: unknown, where: TextPlace): unknown {
    if (typeof value === 'string') return text(value, where);
    if (Array.isArray(value)) return value.map((each) => free(each, where));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [text(key, where), free(part, where)]),
    );
  }

  function json(given: string, where: TextPlace): string {
    let value: unknown;
    try {
      value = JSON.parse(given);
    } catch {
      // A model's arguments need not be JSON; the tool refuses them.
      return text(given, where);
    }
    const made = JSON.stringify(free(value, where));
    // As the model wrote them, if nothing is hidden: a replay sends the same bytes.
    return made === JSON.stringify(value) ? given : made;
  }

  function part(value: unknown, key: string, where: TextPlace): unknown {
    if (typeof value === 'string') {
      if (key === 'args') return json(value, where);
      const isText = key === 'reason' ? REASON_IS_TEXT.includes(where.kind) : !NO_TEXT.has(key);
      return isText ? text(value, where) : value;
    }
    if (FREE.has(key)) return key === 'live' ? values(value, where) : free(value, where);
    if (Array.isArray(value)) return value.map((each) => part(each, key, where));
    if (typeof value !== 'object' || value === null) return value;
    const made = Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, part(each, name, where)]),
    );
    // The name of a file is text, unlike those of tools and layers.
    if (typeof made['name'] === 'string' && 'mediaType' in made)
      made['name'] = text(made['name'], where).slice(0, 255);
    // Its signature is that of other words: sent back with these, the vendor would refuse the request.
    if (isOtherReasoning(value, made, where)) delete made['signature'];
    return made;
  }

  /** Some vendors have the words in the signature, too. */
  function isOtherReasoning(given: object, made: Record<string, unknown>, where: TextPlace): boolean {
    const { signature } = made;
    if (typeof signature !== 'string' || !('text' in given)) return false;
    return made['text'] !== given.text || text(signature, where) !== signature;
  }

  /** The items of a turn, whose names are the runtime's. */
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

  function patch(given: ActorPatch): ActorPatch {
    const { state } = given;
    if (!state) return given;
    const { outbox, posts, timers } = state;
    const inPosts = (list: NonNullable<typeof posts>) =>
      list.map((post) => ({ ...post, draft: draft(post.draft) }));
    return {
      ...given,
      state: {
        ...state,
        ...(outbox && { outbox: outbox.map(draft) }),
        ...(posts && { posts: inPosts(posts) }),
        ...(timers && { timers: timers.map((timer) => ({ ...timer, posts: inPosts(timer.posts) })) }),
      },
    };
  }

  return { text, json, body, draft, patch };
}
