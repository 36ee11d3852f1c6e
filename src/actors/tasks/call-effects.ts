import {
  type EventDraft,
  type GuardStoppedBody,
  type OutgoingEvent,
  SYSTEM_AUTHOR,
  type Timer,
} from '../../events/index.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';

/** What a call does to the turn and to others: written in its ledger entry, so that a replay does the same. */
export interface CallEffects {
  /** For the log of this conversation, after the results of the step. */
  events: EventDraft[];
  /** For whichever log each names. */
  posts: OutgoingEvent[];
  timers: Timer[];
  /** The turn ends with this step. */
  ends: boolean;
  /** The turn may end without words. */
  silent?: boolean;
  /** The turn fails with this step: a guard has stopped it. */
  stops?: GuardStoppedBody;
}

/** Where a call stands in its turn. */
export interface CallPlace {
  step: number;
  index: number;
}

/** What the model is told, and what comes of it. A refusal has a text alone, or with the event that tells people of it. */
export type CarriedOut = { outcome: 'done' | 'failed'; text: string; effects?: CallEffects };

export function effectsOf(parts: Partial<CallEffects>): CallEffects {
  return { events: [], posts: [], timers: [], ends: false, ...parts };
}

export function refused(text: string): CarriedOut {
  return { outcome: 'failed', text };
}

/** A refusal that people are to see: once in a turn, however often its agent tries. */
export function stopped(run: TurnRun, at: CallPlace, body: GuardStoppedBody): CarriedOut {
  const { guard, message } = body;
  const isTold = run.outputs.some(
    (output) =>
      output.kind === 'guard.stopped' && output.body.guard === guard && output.body.message === message,
  );
  if (isTold) return refused(message);
  return { outcome: 'failed', text: message, effects: effectsOf({ events: [stopDraft(run, body, at)] }) };
}

/** As `stopped`; an agent that was told so in an earlier step and goes on all the same ends its turn with it. */
export function stoppedForGood(run: TurnRun, at: CallPlace, body: GuardStoppedBody): CarriedOut {
  const { guard, message } = body;
  const isTold = run.outputs.some((output) => output.kind === 'guard.stopped' && output.body.guard === guard);
  if (!isTold) return stopped(run, at, body);
  return { outcome: 'failed', text: message, effects: effectsOf({ stops: body }) };
}

/** The guard's own words in the log: for people, who can do something about it. */
export function stopDraft(run: TurnRun, body: GuardStoppedBody, at?: CallPlace): EventDraft {
  run.deps.metrics.count('guards', { tenant: run.live.address.tenant, guard: body.guard });
  const { step, index } = at ?? { step: run.step, index: 0 };
  return { ...ownDraft(run, `guard:${step}.${index}`), author: SYSTEM_AUTHOR, kind: 'guard.stopped', body };
}
