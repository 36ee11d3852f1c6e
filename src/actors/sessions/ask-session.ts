import { deltaOf, placeOf, sessionMismatch, standsAt } from '../../context/index.ts';
import type { PromptRecord, Session } from '../../events/index.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import type { Sending } from './session-run.ts';
import { termsFor } from './session-terms.ts';
import { leaveSession, mayBeTouched } from './settle-session.ts';

/**
 * A provider without memory is sent the whole prompt. One with a session is sent what the session has not seen: the
 * results that it waits for, or everything since the last answer that counts; and the whole prompt where the session
 * does not match any more. Decided anew for each try: a failure closes the turn in the provider.
 */
export function askSession(run: TurnRun): Sending {
  const { prompt, runtime, session, live, turn } = run;
  if (!prompt) throw new Error('a model is called only with an assembled prompt');
  if (!runtime.provider.capabilities.sessionResumption) return { prompt };
  const place = placeOf(live.view, turn.id);
  const { open } = session;
  if (open && standsAt(live.view, open)) {
    const delta = deltaOf(prompt, live.view, open);
    const isAnswered = delta.messages.every(({ role }) => role === 'tool');
    if (isAnswered) return { prompt: seen(run, delta), session: { request: { kind: 'continue' }, place } };
  }
  leaveSession(run);
  dismissMismatch(run);
  const { base } = session;
  if (!base) return { prompt, session: { request: { kind: 'start' }, place } };
  const mark = { id: base.id, checkpoint: base.checkpoint };
  const delta = deltaOf(prompt, live.view, base);
  return { prompt: seen(run, delta), session: { request: { kind: 'resume', mark }, place } };
}

function seen({ lease }: TurnRun, delta: PromptRecord): PromptRecord {
  return { ...delta, cursor: { before: lease.record.cursor, after: delta.upTo } };
}

function dismissMismatch(run: TurnRun): void {
  const { session, runtime, live, baseline } = run;
  if (!session.base) return;
  const isBroken = mayBeTouched(run);
  const found: Session = isBroken ? { ...session.base, state: 'unknown' } : session.base;
  const reason = sessionMismatch(live.view, found, termsFor(runtime, baseline.id, found));
  if (reason) Object.assign(session, { base: null, reason });
}
