import { deltaOf, isAdopted, placeOf, sessionMismatch, standsAt } from '../../context/index.ts';
import type {
  EventDraft,
  PromptRecord,
  Session,
  SessionChangedBody,
  SessionReason,
} from '../../events/index.ts';
import { ownDraft, type TurnRun, writeMeanwhile } from '../turn/turn-run.ts';
import { type AnswerSession, type Sending, termsFor } from '../turn/session-run.ts';
import { leaveSession, mayBeTouched } from './settle-session.ts';
import { takeSession } from './take-session.ts';
import type { ModelEvent } from '../../providers/provider.ts';

/**
 * Decides what is sent to a provider with sessions. A session gets what it has not seen: the results that it waits for, or
 * everything since the last valid answer. If the session no longer matches, a new one gets the whole prompt. Decided for each
 * try, because a failure closes the turn in the provider.
 */
export function askSession(run: TurnRun): Sending {
  const { prompt, live, turn } = run;
  const { session } = run.meanwhile;
  if (!prompt) throw new Error('a model is called only with an assembled prompt');
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
  if (isAdopted(base)) return { prompt, session: { request: { kind: 'resume', mark }, place } };
  const delta = deltaOf(prompt, live.view, base);
  return { prompt: seen(run, delta), session: { request: { kind: 'resume', mark }, place } };
}

function seen({ lease }: TurnRun, delta: PromptRecord): PromptRecord {
  return { ...delta, cursor: { before: lease.record.cursor, after: delta.upTo } };
}

function dismissMismatch(run: TurnRun): void {
  const { runtime, live, baseline } = run;
  const { session } = run.meanwhile;
  if (!session.base) return;
  const isBroken = mayBeTouched(run);
  const found: Session = isBroken ? { ...session.base, state: 'unknown' } : session.base;
  const reason = sessionMismatch(live.view, found, termsFor(runtime, baseline.id, found));
  if (reason) Object.assign(session, { base: null, reason });
}

/** Records what a provider reports about its session. A session that simply continues is not recorded. */
export function hearSession(
  run: TurnRun,
  event: Extract<ModelEvent, { type: 'session' | 'compacted' }>,
): void {
  const { session } = run.meanwhile;
  if (event.type === 'compacted') {
    session.compacted = true;
    return noteSession(run, 'compacted', session.base?.id ?? '');
  }
  const { change, id } = event;
  if (change === 'warm') return;
  if (change !== 'started') return noteSession(run, change, id);
  writeMeanwhile(run, takeSession(run, id));
  const { reason } = session;
  noteSession(run, reason === 'first' ? 'started' : 'rebuilt', id, reason);
}

/** The session's part of a journalled answer. From here on the turn is open or settled in the provider. */
export function answerSession(
  { meanwhile: { session }, runtime }: TurnRun,
  sending: Sending,
  { stop, session: mark }: Extract<ModelEvent, { type: 'done' }>,
): { session?: AnswerSession } {
  if (!sending.session) return {};
  session.open = stop === 'calls' ? sending.session.place : null;
  return {
    session: {
      mark: mark ? { ...mark, home: runtime.provider.home ?? '' } : null,
      delta: sending.prompt.delta ?? null,
      compacted: session.compacted,
    },
  };
}

/** Drops a session that the provider no longer knows: a new one gets the whole prompt. */
export function loseSession(run: TurnRun, message: string): void {
  const { deps, live } = run;
  const { session } = run.meanwhile;
  noteSession(run, 'lost', session.base?.id ?? '', 'lost');
  Object.assign(session, { base: null, reason: 'lost' });
  deps.onWarning(new Error(message), `session of @${live.address.agent}`);
}

export function noteSession(
  run: TurnRun,
  change: SessionChangedBody['change'],
  id: string,
  reason?: SessionReason,
): void {
  const { deps, live, lease, runtime } = run;
  const { session } = run.meanwhile;
  session.notes += 1;
  const draft: EventDraft = {
    ...ownDraft(run, `session:${lease.record.fence}.${session.notes}`),
    kind: 'session.changed',
    body: { change, provider: runtime.profile.provider, session: id, ...(reason && { reason }) },
  };
  writeMeanwhile(run, deps.log.append(live.address, [draft]));
}
