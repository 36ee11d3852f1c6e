import { type Event, isTaskEnd } from '../events/index.ts';
import { readerAt } from './attribution.ts';
import { boundShown } from './bound-shown.ts';
import { closeGroup } from './call-group.ts';
import { foldOwn } from './own-words.ts';
import type { Steps } from './steps.ts';
import { LINE_WORK, plainPart, pushUser, verbatim } from './turn-input.ts';
import { isOwn, type View } from './view.ts';

/**
 * Renders what has waited up to `upTo` as history, and returns what is left for the turn to show: everything of others
 * after the agent's last own words, and the inputs of the turn wherever they stand, so that they come last.
 */
export function* settle(view: View, upTo: number, inputs: ReadonlySet<number>): Steps<Event[]> {
  const later = view.pending.findIndex((event) => event.seq > upTo);
  const reached = later === -1 ? view.pending : view.pending.slice(0, later);
  // The end of a task is given with all that it was waited for with.
  const isHeld = (event: Event) => isTaskEnd(event) && !inputs.has(event.seq);
  const events = yield* boundShown(
    reached.filter((event) => !isHeld(event)),
    view.rendering,
  );
  const rest = later === -1 ? [] : view.pending.slice(later);
  view.pending = [...reached.filter(isHeld), ...rest];
  const reader = readerAt(view, upTo);
  let waiting: Event[] = [];
  for (const event of events) {
    if (!isOwn(view, event)) {
      waiting.push(event);
    } else if (event.kind === 'tool.result') {
      const late = foldOwn(view, event, placed(event)) === 'late';
      if (late) waiting.push(event);
    } else {
      closeGroup(view);
      const history = waiting.filter(({ seq }) => !inputs.has(seq));
      for (const other of history) {
        yield LINE_WORK;
        yield* pushUser(view, plainPart(verbatim(other, reader)), other.seq);
      }
      waiting = waiting.filter(({ seq }) => inputs.has(seq));
      foldOwn(view, event, placed(event));
      view.present = true;
    }
  }
  closeGroup(view);
  return waiting;
}

function placed({ id, seq, tokens }: Event) {
  return { id, seqs: [seq], tokens };
}
