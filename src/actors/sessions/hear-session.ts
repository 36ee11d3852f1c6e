import type { EventDraft, SessionReason } from '../../events/index.ts';
import type { ModelEvent } from '../../providers/provider.ts';
import type { AnswerSession } from './session-run.ts';
import { ownDraft, type TurnRun, writeMeanwhile } from '../turn/turn-run.ts';

type SessionKind = Extract<EventDraft['kind'], `session.${string}`>;

/** Records what a provider says of its session. One that goes on where it was is no news. */
export function hearSession(
  run: TurnRun,
  event: Extract<ModelEvent, { type: 'session' | 'compacted' }>,
): void {
  const { session } = run;
  if (event.type === 'compacted') {
    session.compacted = true;
    return noteSession(run, 'session.compacted', session.base?.id ?? '');
  }
  const { change, id } = event;
  if (change === 'warm') return;
  if (change !== 'started') return noteSession(run, `session.${change}`, id);
  const { reason } = session;
  noteSession(run, reason === 'first' ? 'session.started' : 'session.rebuilt', id, reason);
}

/** What is journalled of the session with an answer. From here on the turn is open in the provider, or settled in it. */
export function answerSession(
  run: TurnRun,
  { stop, session: mark }: Extract<ModelEvent, { type: 'done' }>,
): { session?: AnswerSession } {
  const { sending, session, runtime } = run;
  if (!sending?.session) return {};
  session.open = stop === 'calls' ? sending.session.place : null;
  return {
    session: {
      mark: mark ? { ...mark, home: runtime.provider.home ?? '' } : null,
      delta: sending.prompt.delta ?? null,
      compacted: session.compacted,
    },
  };
}

/** The provider does not know the session: what it was sent is sent again, to a new one. */
export function loseSession(run: TurnRun, message: string): void {
  const { session, deps, live } = run;
  noteSession(run, 'session.lost', session.base?.id ?? '', 'lost');
  Object.assign(session, { base: null, reason: 'lost' });
  deps.onWarning(new Error(message), `session of @${live.address.agent}`);
}

function noteSession(run: TurnRun, kind: SessionKind, id: string, reason?: SessionReason): void {
  const { deps, live, lease, runtime, session } = run;
  session.notes += 1;
  const draft: EventDraft = {
    ...ownDraft(run, `session:${lease.record.fence}.${session.notes}`),
    kind,
    body: { provider: runtime.profile.provider, session: id, ...(reason && { reason }) },
  };
  writeMeanwhile(run, deps.log.append(live.address, [draft]));
}
