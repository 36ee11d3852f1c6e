import type { Event } from '../events/index.ts';

const texts = new WeakMap<Event, string>();

/** An event as JSON, made once for all who follow its conversation at this moment: events are never changed. */
export function eventJson(event: Event): string {
  const known = texts.get(event);
  if (known !== undefined) return known;
  const text = JSON.stringify(event);
  texts.set(event, text);
  return text;
}
