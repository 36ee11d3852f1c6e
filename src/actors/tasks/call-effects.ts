import {
  type EventDraft,
  type GuardStoppedBody,
  type OutgoingEvent,
  SYSTEM_AUTHOR,
  type Timer,
} from '../../events/index.ts';
import { ownDraft, type TurnRun } from '../attempt/turn-run.ts';

/** Effects of a call on the turn and on other logs. They are stored with the call's ledger entry, so a replay repeats them. */
export interface CallEffects {
  /** Events that are appended to this log after the results of the step. */
  events: EventDraft[];
  /** Outgoing events, each for the log that it names. The field name is stored. */
  posts: OutgoingEvent[];
  timers: Timer[];
  /** Whether the turn ends with this step. */
  ends: boolean;
  /** Whether the turn may end without words. */
  silent?: boolean;
  /** Set if a guard stops the turn, so that it fails with this step. */
  stops?: GuardStoppedBody;
}

/** Position of a call in its turn. */
export interface CallPlace {
  step: number;
  index: number;
}

/** The result for the model, and the effects. A refusal has no effects except an event that reports it to people. */
export type AppliedRequest = { outcome: 'done' | 'failed'; text: string; effects?: CallEffects };

/** The result of a call that is not made because the turn is given up. */
export const NOT_RUN = '[not run: the turn was given up before this call.]';

export function effectsOf(parts: Partial<CallEffects>): CallEffects {
  return { events: [], posts: [], timers: [], ends: false, ...parts };
}

export function refused(text: string): AppliedRequest {
  return { outcome: 'failed', text };
}

/** A refusal that is reported to people, once per turn even if the agent tries again. */
export function stopped(run: TurnRun, at: CallPlace, body: GuardStoppedBody): AppliedRequest {
  const { guard, message } = body;
  const isReported = run.outputs.some(
    (output) =>
      output.kind === 'guard.stopped' && output.body.guard === guard && output.body.message === message,
  );
  if (isReported) return refused(message);
  return { outcome: 'failed', text: message, effects: effectsOf({ events: [stopDraft(run, body, at)] }) };
}

/** Like `stopped`, but a second refused attempt ends the turn. */
export function stoppedForGood(run: TurnRun, at: CallPlace, body: GuardStoppedBody): AppliedRequest {
  const { guard, message } = body;
  const isReported = run.outputs.some(
    (output) => output.kind === 'guard.stopped' && output.body.guard === guard,
  );
  if (!isReported) return stopped(run, at, body);
  return { outcome: 'failed', text: message, effects: effectsOf({ stops: body }) };
}

/** The event that reports a guard to people, who can act on it. */
export function stopDraft(run: TurnRun, body: GuardStoppedBody, at?: CallPlace): EventDraft {
  run.deps.metrics.count('guards', { tenant: run.live.address.tenant, guard: body.guard });
  const { step, index } = at ?? { step: run.step, index: 0 };
  return { ...ownDraft(run, `guard:${step}.${index}`), author: SYSTEM_AUTHOR, kind: 'guard.stopped', body };
}
