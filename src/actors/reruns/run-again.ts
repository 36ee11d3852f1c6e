import { TroupeError } from '../../base/errors.ts';
import type { PinnedTurn, Rerun } from '../../events/index.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import type { LiveActor } from '../engine/registry.ts';
import { withModel } from './other-model.ts';
import { readTurn } from '../log/read-turn.ts';
import type { RecordedCalls } from '../turn/feature-types.ts';
import { recordedCalls } from './recorded-calls.ts';

interface Start {
  deps: EngineDeps;
  live: Pick<LiveActor, 'address'>;
  runtime: AgentRuntime;
  turn: Pick<PinnedTurn, 'rerun'>;
}

/** What is different for a turn that repeats another; null for any other turn. Read again after a crash. */
export async function readRerun({
  deps,
  live,
  runtime,
  turn,
}: Start): Promise<{ runtime: AgentRuntime; recorded: RecordedCalls } | null> {
  if (turn.rerun === undefined) return null;
  const event = await deps.store.readById(live.address, turn.rerun);
  const rerun: Rerun | undefined = event?.kind === 'command' ? event.body.rerun : undefined;
  if (!rerun) throw new TroupeError('store_corrupt', `${turn.rerun} is not in the store`, { id: turn.rerun });
  const { change } = rerun;
  // Without the original no result is known.
  const original = await readTurn(deps.store, live.address.tenant, rerun.turn).catch((error: unknown) => {
    if (error instanceof TroupeError && error.code === 'turn_unknown') return null;
    throw error;
  });
  return {
    runtime: change?.kind === 'model' ? withModel(deps.agents, runtime, change) : runtime,
    recorded: recordedCalls(deps, rerun, original),
  };
}
