import type { EventOf } from '../events/index.ts';
import { MAX_CALLS } from './bounds.ts';
import type { TurnView } from './model.ts';
import { oneLine } from './one-line.ts';

/** A step with its calls, whose outcome nobody knows yet. */
export function foldStep(turn: TurnView, { seq, body }: EventOf<'step'>): Partial<TurnView> {
  const calls = body.calls.map(({ id, name }) => ({ call: id, name, outcome: null, seq }));
  return {
    steps: turn.steps + 1,
    calls: [...turn.calls, ...calls].slice(-MAX_CALLS),
    callCount: turn.callCount + calls.length,
    said: turn.said === '' ? oneLine(body.content) : turn.said,
  };
}

/** What came of a call. One that a person had to agree to was asked for in an earlier turn. */
export function foldCall(turn: TurnView, { seq, body }: EventOf<'tool.result'>): Partial<TurnView> {
  const { call, name, outcome } = body;
  const index = turn.calls.findLastIndex((each) => each.call === call);
  const known = turn.calls[index];
  if (known) return { calls: turn.calls.with(index, { ...known, outcome }) };
  if (turn.callCount > turn.calls.length) return {};
  return {
    calls: [...turn.calls, { call, name, outcome, seq }].slice(-MAX_CALLS),
    callCount: turn.callCount + 1,
  };
}
