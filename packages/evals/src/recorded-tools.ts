import { nearestName, type ToolContext } from './troupe.ts';
import type { ToolStub } from './company.ts';
import { comparable, type RecordedCall, type Recording } from './recording.ts';
import { refusal } from './refusal.ts';

const MOST_COMPARED = 1_000;
const MOST_SHOWN = 400;

/**
 * Tools that return what they returned: for `tools` of `playConversation`. A call with other arguments, or of a tool that was
 * not called, fails and ends the run as impossible; the message names the nearest recorded call.
 */
export function recordedTools({ calls }: Pick<Recording, 'calls'>): Record<'*', ToolStub> {
  const known = Map.groupBy(calls, ({ tool, args }) => keyOf(tool, args));
  const uses = new Map<string, number>();

  function answer(args: Record<string, unknown>, { turn }: ToolContext, tool: string): string {
    const key = keyOf(tool, args);
    const same = known.get(key);
    if (!same) throw new Error(refusal(`${shown(tool, args)}; ${nearest(tool, args, calls)}`));
    const here = same.filter((call) => call.turn === turn);
    const place = `${turn} ${key}`;
    const use = uses.get(place) ?? 0;
    uses.set(place, use + 1);
    const found = (here.length > 0 ? here : same).at(use) ?? same.at(-1)!;
    if (found.outcome === 'failed') throw new Error(withoutName(found));
    return found.result;
  }
  return { '*': answer };
}

/** Troupe writes it in front of what a tool throws. */
function withoutName({ tool, result }: RecordedCall): string {
  const prefix = `${tool} failed: `;
  return result.startsWith(prefix) ? result.slice(prefix.length) : result;
}

/** Of the same tool first, then by the number of arguments that differ. */
function nearest(tool: string, args: Record<string, unknown>, calls: readonly RecordedCall[]): string {
  const names = new Set(calls.map((call) => call.tool));
  const name = names.has(tool) ? tool : nearestName(tool, names);
  const candidates = calls.filter((call) => name === null || call.tool === name).slice(0, MOST_COMPARED);
  const wanted = textsOf(args);
  const [best] = candidates
    .map((call) => ({ call, different: differences(wanted, textsOf(call.args)) }))
    .toSorted((a, b) => a.different - b.different);
  return best ? `the nearest call in it is ${shown(best.call.tool, best.call.args)}` : 'it has no call';
}

function textsOf(args: Record<string, unknown>): Map<string, string> {
  return new Map(Object.entries(args).map(([name, value]) => [name, comparable(value)]));
}

function differences(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): number {
  const names = new Set([...a.keys(), ...b.keys()]);
  return [...names].filter((name) => a.get(name) !== b.get(name)).length;
}

function keyOf(tool: string, args: Record<string, unknown>): string {
  return `${tool} ${comparable(args)}`;
}

function shown(tool: string, args: Record<string, unknown>): string {
  const text = comparable(args);
  return `${tool} ${text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN).toWellFormed()}…` : text}`;
}
