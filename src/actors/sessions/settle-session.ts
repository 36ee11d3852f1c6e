import { isAdopted } from '../../context/index.ts';
import type { ActorPatch } from '../../store/store.ts';
import { reachOf } from '../turn/pinned-turn.ts';
import { cacheKeyOf, type TurnRun } from '../turn/turn-run.ts';

/** Leaves an open turn, for whose results the provider would wait for ever. */
export function leaveSession(run: TurnRun): void {
  const { session } = run.meanwhile;
  if (!session.open) return;
  session.open = null;
  run.runtime.provider.leave?.(cacheKeyOf(run));
}

/** Whether this attempt or an earlier one sent a request that was not answered to the end. */
export function mayBeTouched({ meanwhile: { session }, resumed }: TurnRun): boolean {
  return session.touched || resumed;
}

/**
 * The session fields of the commit. Only a turn that was answered to the end advances the session; after any other turn,
 * the next one rewinds it.
 */
export function sessionPatch(run: TurnRun): Pick<NonNullable<ActorPatch['state']>, 'session' | 'cursor'> {
  const { answer, turn, live, lease, runtime, ending } = run;
  const { session } = run.meanwhile;
  const mark = ending.kind === 'done' ? answer?.session?.mark : null;
  if (mark) {
    const { profile } = runtime;
    const began = session.base?.id === mark.id ? session.base : null;
    return {
      session: {
        provider: profile.provider,
        model: profile.model,
        ...mark,
        baseline: run.baseline.id,
        sent: live.view.slots.length,
        sentHash: live.view.chain,
        turn: turn.id,
        compacted: (began?.compacted ?? false) || session.compacted,
        state: 'ok',
      },
      cursor: reachOf(turn),
    };
  }
  const { base } = session;
  if (!base) return { session: null, cursor: null };
  const canRewind = runtime.provider.capabilities.rewind && !isAdopted(base);
  const isLeft = mayBeTouched(run) && !canRewind;
  return { session: isLeft ? { ...base, state: 'unknown' } : base, cursor: lease.record.cursor };
}
