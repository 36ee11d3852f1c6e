import type { TurnSteeredBody } from '../events/index.ts';
import { readerAt } from './attribution.ts';
import { boundShown } from './bound-shown.ts';
import { closeGroup } from './call-group.ts';
import type { Steps } from './steps.ts';
import { LINE_WORK, plainPart, pushUser, verbatim } from './turn-input.ts';
import type { View } from './view.ts';

/**
 * What a running turn was given between two of its steps: messages of their own, behind the results of the step before.
 * From here on they are inputs of the turn as the others are.
 */
export function* takeIn(view: View, { upTo, inputs }: TurnSteeredBody): Steps<void> {
  closeGroup(view);
  const named = new Set(inputs);
  const reader = readerAt(view, upTo);
  const waiting = view.pending.filter(({ seq }) => named.has(seq));
  const taken = yield* boundShown(waiting, view.rendering);
  view.pending = view.pending.filter(({ seq }) => !named.has(seq));
  for (const event of taken) {
    yield LINE_WORK;
    yield* pushUser(view, plainPart(verbatim(event, reader)), event.seq);
  }
  if (view.turn) view.turn = { ...view.turn, inputs: new Set([...view.turn.inputs, ...inputs]) };
}
