import { runtimeId, SYSTEM_AUTHOR } from '../../events/index.ts';
import type { RequestOf } from '../../tools/tool.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { type CallPlace, type CarriedOut, effectsOf, refused } from './call-effects.ts';

/** Reminders of one agent in one conversation that may wait at once. */
const MOST_REMINDERS = 50;
/** The last that a Date can hold, ms. */
const LAST_TIME = 8.64e15;

/** A message to oneself, later: held with the actor's record, and posted by whoever finds it due. */
export function remind(run: TurnRun, request: RequestOf<'remind'>, place: CallPlace): CarriedOut {
  const { live, deps, turn, lease } = run;
  const now = deps.clock.now();
  const { text, at = now + (request.inMs ?? 0) } = request;
  if (!(at > now && at < LAST_TIME)) {
    const asked = Math.abs(at) < LAST_TIME ? new Date(at).toISOString() : String(at);
    return refused(`${asked} is not a time in the future: it is ${new Date(now).toISOString()}`);
  }
  const waiting = lease.record.timers.filter(({ task }) => task === undefined).length + run.timers.length;
  if (waiting >= MOST_REMINDERS) return refused(`${waiting} reminders wait already: that is the most`);
  const { conversation, agent } = live.address;
  const draft = {
    id: runtimeId('remind', turn.id, `${place.step}.${place.index}`),
    author: SYSTEM_AUTHOR,
    to: [agent],
    hop: turn.hop,
    kind: 'message' as const,
    body: { content: `Reminder that you asked for: ${text}` },
  };
  const timer = { at: Math.ceil(at), posts: [{ conversation, draft }] };
  return {
    outcome: 'done',
    text: `you are reminded at ${new Date(timer.at).toISOString()}`,
    effects: effectsOf({ timers: [timer] }),
  };
}
