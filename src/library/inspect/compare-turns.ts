import { diffWordsWithSpace } from 'diff';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import {
  callsOf,
  isSameCall,
  type LoggedCall,
  type LoggedTurn,
  readTurn,
} from '../../actors/turn/read-turn.ts';
import {
  addUsage,
  isAbout,
  NO_USAGE,
  type Rerun,
  runtimeId,
  type TenantId,
  type TurnId,
  type Usage,
} from '../../events/index.ts';
import { traceTurn, type TurnTrace } from './trace.ts';

/** One of two turns. */
export interface ComparedTurn {
  /** Id of the turn. */
  turn: TurnId;
  /** How it ended, or that it runs. */
  status: TurnTrace['status'];
  /** Provider and model of its last call. Null: no model was asked. */
  model: string | null;
  /** Its answer; of a turn without one, what it had written. */
  words: string;
  /** Why it failed. Null: it did not. */
  problem: string | null;
  /** Steps that called tools, and the answer. */
  steps: number;
  /** Tokens, as the provider reported them. Steps that were taken from another turn have none. */
  usage: Usage;
  /** US dollars of the calls with a known price. Null: none. */
  cost: number | null;
  /** From its start to its end, ms. Null: it runs. */
  ms: number | null;
}

/** A call with its result. */
export interface ComparedCall {
  /** Its arguments, as the model wrote them. */
  args: string;
  /** `done`, `failed`, `lost` or `waiting`. Null: no result is in the log. */
  outcome: string | null;
  /** What the model was told, at most 4,000 characters of it. */
  result: string;
}

/** Calls of the same tool in both turns; or a call that one of them lacks. */
export interface CallPair {
  /** Name of the tool. */
  name: string;
  /** Whether arguments and results are the same. */
  same: boolean;
  /** The call of the first turn. Null: it made none. */
  a: ComparedCall | null;
  /** The call of the second turn. Null: it made none. */
  b: ComparedCall | null;
}

/** A piece of the words: of both answers, of the first (`removed`) or of the second (`added`). */
export interface WordChange {
  /** Which answers have it. */
  change: 'equal' | 'removed' | 'added';
  /** As it stands there, spaces included. */
  text: string;
}

/** Two turns side by side. */
export interface TurnComparison {
  /** The first. */
  a: ComparedTurn;
  /** The second. */
  b: ComparedTurn;
  /** What was changed, if one of them runs the other again. Null: neither does. */
  rerun: Rerun | null;
  /** From the words of the first to those of the second. */
  words: WordChange[];
  /** The calls of both, in order. */
  calls: CallPair[];
  /** Number of further calls that are left out to bound the answer. */
  omitted: number;
}

const MAX_CALLS = 200;
const MAX_RESULT = 4_000;
/** Texts that differ by more words are not aligned. */
const MAX_EDITS = 2_000;

/** Two turns, of any agents and conversations: words, calls, tokens, cost and time. Throws `turn_unknown`. */
export async function compareTurns(
  deps: EngineDeps,
  tenant: TenantId,
  [a, b]: readonly [string, string],
): Promise<TurnComparison> {
  const [before, after] = await Promise.all([sideOf(deps, tenant, a), sideOf(deps, tenant, b)]);
  const pairs = pairCalls(callsOf(before.logged), callsOf(after.logged));
  return {
    a: before.turn,
    b: after.turn,
    rerun: (await rerunOf(deps, after.logged, a)) ?? (await rerunOf(deps, before.logged, b)),
    words: diffOf(before.turn.words, after.turn.words),
    calls: pairs.slice(0, MAX_CALLS),
    omitted: Math.max(0, pairs.length - MAX_CALLS),
  };
}

async function sideOf(
  deps: EngineDeps,
  tenant: TenantId,
  id: string,
): Promise<{ turn: ComparedTurn; logged: LoggedTurn }> {
  const [logged, trace] = await Promise.all([readTurn(deps.store, tenant, id), traceTurn(deps, tenant, id)]);
  const { own, end, started } = logged;
  const last = trace.prompts.at(-1);
  const reply = own.findLast((event) => event.kind === 'message');
  const steps = own.filter(({ kind }) => kind === 'step').length;
  const ended = end && isAbout(end, 'turnEnd') ? end : null;
  const partial = ended && ended.kind !== 'turn.done' ? ended.body.partial : '';
  return {
    logged,
    turn: {
      turn: trace.turn,
      status: trace.status,
      model: last ? `${last.provider} ${last.model}` : null,
      words: reply?.kind === 'message' ? reply.body.content : partial,
      problem: ended?.kind === 'turn.failed' ? `${ended.body.code}: ${ended.body.message}` : null,
      steps: steps + (reply ? 1 : 0),
      usage:
        ended?.kind === 'turn.done'
          ? ended.body.usage
          : trace.prompts.reduce((sum, { usage }) => (usage ? addUsage(sum, usage) : sum), NO_USAGE),
      cost: trace.cost,
      ms: end ? Math.max(0, end.at - started.at) : null,
    },
  };
}

/** What the turn was forked for, if it runs `of` again. */
async function rerunOf(
  { store }: EngineDeps,
  { log, started }: LoggedTurn,
  of: string,
): Promise<Rerun | null> {
  const forked = await store.readById(log, runtimeId('forked', started.body.upTo));
  const rerun = forked?.kind === 'command' ? forked.body.rerun : undefined;
  return rerun?.turn === of ? rerun : null;
}

function diffOf(a: string, b: string): WordChange[] {
  const parts = diffWordsWithSpace(a, b, { maxEditLength: MAX_EDITS });
  if (!parts)
    return [
      { change: 'removed', text: a },
      { change: 'added', text: b },
    ];
  return parts.map(({ value, added, removed }) => ({
    change: added ? 'added' : removed ? 'removed' : 'equal',
    text: value,
  }));
}

/** Pairs the calls of each tool in their order. What the second turn lacks stands where the first one made it. */
function pairCalls(a: readonly LoggedCall[], b: readonly LoggedCall[]): CallPair[] {
  const left = [...b];
  const pairs = a.map((was): CallPair => {
    const at = partnerOf(was, left);
    const [is] = at === -1 ? [] : left.splice(at, 1);
    return pairOf(was, is);
  });
  return [...pairs, ...left.map((is) => pairOf(undefined, is))];
}

function partnerOf({ call }: LoggedCall, among: readonly LoggedCall[]): number {
  const same = among.findIndex((each) => isSameCall(each.call, call));
  return same === -1 ? among.findIndex((each) => each.call.name === call.name) : same;
}

function pairOf(was: LoggedCall | undefined, is: LoggedCall | undefined): CallPair {
  const same =
    was !== undefined &&
    is !== undefined &&
    isSameCall(was.call, is.call) &&
    was.result?.outcome === is.result?.outcome &&
    was.result?.content === is.result?.content;
  return { name: (was ?? is)?.call.name ?? '', same, a: was ? shown(was) : null, b: is ? shown(is) : null };
}

function shown({ call, result }: LoggedCall): ComparedCall {
  const content = result?.content ?? '';
  const text = content.length > MAX_RESULT ? `${content.slice(0, MAX_RESULT)}…` : content;
  return { args: call.args, outcome: result?.outcome ?? null, result: text.toWellFormed() };
}
