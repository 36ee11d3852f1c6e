import {
  canonicalJson,
  parseExact,
  type Rerun,
  type ToolCall,
  type ToolOutcome,
} from '../../events/index.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { callsOf, type LoggedCall, type LoggedTurn } from './read-turn.ts';

/** The result of a call that is not made. */
interface RecordedResult {
  outcome: ToolOutcome;
  text: string;
  /** The call ended the original turn, and ends this one. */
  ends: boolean;
}

/** What the calls of a repeated turn are told. Null: the call is made. */
export type RecordedCalls = (call: ToolCall) => Promise<RecordedResult | null>;

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
    const same = known.filter((each) => isSame(each.call, call));
    const found = same.find((each) => each.call.id === call.id) ?? same.at(-1);
    if (!found?.result) return tools === 'run' ? null : { outcome: 'failed', text: NOT_RUN, ends: false };
    if (change?.kind === 'toolResult' && changed && isSame(changed.call, call))
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

/** The same tool with the same arguments, however they are written. */
export function isSame(a: ToolCall, b: ToolCall): boolean {
  return a.name === b.name && (a.args === b.args || comparable(a.args) === comparable(b.args));
}

function comparable(args: string): string {
  try {
    return canonicalJson(parseExact(args.trim() || '{}'));
  } catch {
    return args;
  }
}
