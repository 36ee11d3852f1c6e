import type { Rerun } from '../../events/index.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { callsOf, isSameCall, type LoggedCall, type LoggedTurn } from '../log/read-turn.ts';
import type { RecordedCalls } from '../turn/feature-types.ts';

const NOT_RUN =
  '[not run: this turn is run again from its record, in which there is no result of this call with these arguments. Go on without it.]';

/** Null for `original`: it is no longer in the store. */
export function recordedCalls(
  { store }: Pick<EngineDeps, 'store'>,
  { change, tools }: Rerun,
  original: LoggedTurn | null,
): RecordedCalls {
  const known = original ? callsOf(original).filter(hasEnded) : [];
  const changed = change?.kind === 'toolResult' ? known.find(({ call }) => call.id === change.call) : null;
  const last = original && endedByCalls(original) ? Math.max(...known.map(({ step }) => step)) : -1;
  return async (call) => {
    const same = known.filter((each) => isSameCall(each.call, call));
    const found = same.find((each) => each.call.id === call.id) ?? same.at(-1);
    if (!found?.result) return tools === 'run' ? null : { outcome: 'failed', text: NOT_RUN, ends: false };
    if (change?.kind === 'toolResult' && changed && isSameCall(changed.call, call))
      return { outcome: 'done', text: change.result, ends: false };
    const { outcome, content, artifact } = found.result;
    const whole = artifact && original ? await store.readArtifact(original.log, artifact) : null;
    return { outcome, text: whole ?? content, ends: found.step === last };
  };
}

/** Of a call that waited, or was lost, no result is known. */
function hasEnded({ result }: LoggedCall): boolean {
  return result?.outcome === 'done' || result?.outcome === 'failed';
}

/** A handoff, or a question that was waited for. */
function endedByCalls({ own, end }: LoggedTurn): boolean {
  return end?.kind === 'turn.done' && !own.some(({ kind }) => kind === 'message');
}
