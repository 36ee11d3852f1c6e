import { type Event, eventOf } from '../../events/index.ts';

/** The step whose answer this event is, from 0: words with or without calls, or what was said to an answer without any. */
export function answeredStep(event: Event): number | null {
  const step = eventOf(event, 'step');
  if (step) return step.body.index;
  const note = event.kind === 'injection' ? /:note:(\d+)$/.exec(event.id) : null;
  return note ? Number(note[1]) : null;
}
