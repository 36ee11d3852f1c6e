import type { Event, EventOf } from './event.ts';
import { type Aspect, type EventKind, type KindAbout, KINDS } from './kinds.ts';

const ABOUT = new Map<Aspect, Set<string>>();
for (const [kind, { aspects }] of Object.entries(KINDS))
  for (const aspect of aspects) ABOUT.set(aspect, (ABOUT.get(aspect) ?? new Set()).add(kind));

/** Whether an event has an aspect. An event of an unknown kind has none. */
export function isAbout<E extends { kind: EventKind }, A extends Aspect>(
  event: E,
  aspect: A,
): event is Extract<E, { kind: KindAbout<A> }> {
  return ABOUT.get(aspect)?.has(event.kind) ?? false;
}

/** Whether an event ends a task. */
export function isTaskEnd(event: Pick<Event, 'kind'>): boolean {
  return isAbout(event, 'taskEnd');
}

/** A function for each of several kinds. A missing kind does not compile. */
export type ByKind<K extends EventKind, R> = { readonly [P in K]: (event: EventOf<P>) => R };

/** Calls the function for the kind of an event. Undefined if the table lacks the kind. */
export function forKind<K extends EventKind, R>(table: ByKind<K, R>, event: Event): R | undefined {
  if (!Object.hasOwn(table, event.kind)) return undefined;
  return (table[event.kind as K] as (event: Event) => R)(event);
}

/** Whether an event may have effects. Every fold with consequences asks this first. */
export function hasAuthority(event: Pick<Event, 'context' | 'kind'>): boolean {
  return event.context?.imported !== true || KINDS[event.kind].imported === 'as is';
}

export function isImported({ context }: Pick<Event, 'context'>): boolean {
  return context?.imported === true;
}
