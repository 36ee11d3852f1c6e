import { resolve } from 'node:path';
import type { Event, NamedSession, SessionReason } from '../../events/index.ts';
import { cacheKeyOf, type TurnRun } from '../turn/turn-run.ts';
import { noteSession } from './ask-session.ts';
import { takeSession } from './take-session.ts';

/** The session that the inputs of a turn name for an agent; the last one counts. */
export function sessionNamedIn(inputs: readonly Event[], agent: string): NamedSession | null {
  return inputs.findLast(({ context }) => context?.session?.agent === agent)?.context?.session ?? null;
}

/**
 * Makes the session that an input names the agent's own, if it fits; else records why not. Its first request holds the whole
 * prompt, because it has seen nothing of the conversation.
 */
export async function adoptSession(run: TurnRun): Promise<void> {
  const { turn, runtime, baseline, resumed } = run;
  const { session } = run.meanwhile;
  const named = turn.session;
  if (!named || session.base?.id === named.id) return;
  const refusal = await refusalOf(run, named);
  if (refusal) return noteSession(run, 'refused', named.id, refusal);
  if (!resumed) noteSession(run, 'adopted', named.id, 'named');
  session.base = {
    provider: runtime.profile.provider,
    model: runtime.profile.model,
    id: named.id,
    checkpoint: '',
    home: runtime.provider.home ?? '',
    baseline: baseline.id,
    sent: 0,
    sentHash: '',
    turn: turn.id,
    compacted: false,
    state: 'ok',
  };
  session.reason = 'named';
}

async function refusalOf(run: TurnRun, named: NamedSession): Promise<SessionReason | null> {
  const { profile, provider } = run.runtime;
  if (named.refused) return named.refused;
  if (named.provider !== profile.provider || !provider.capabilities.sessionResumption) return 'provider';
  const cwd = provider.cwdOf?.(cacheKeyOf(run));
  if (named.cwd !== undefined && (cwd === undefined || resolve(named.cwd) !== resolve(cwd)))
    return 'elsewhere';
  return (await takeSession(run, named.id)) ? null : 'taken';
}
