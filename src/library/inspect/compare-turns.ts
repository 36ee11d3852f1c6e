import { diffWordsWithSpace, diffArrays, structuredPatch } from 'diff';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import {
  callsOf,
  isSameCall,
  type LoggedCall,
  type LoggedTurn,
  readTurn,
} from '../../actors/log/read-turn.ts';
import {
  addUsage,
  type AgentId,
  isAbout,
  NO_USAGE,
  type Rerun,
  runtimeId,
  type TenantId,
  type TurnId,
  type Usage,
  parseTurnId,
  type PromptLayer,
  type PromptMessage,
  type PromptRecord,
} from '../../events/index.ts';
import { traceTurn, type TurnTrace } from './cache-cost.ts';
import { isDeepStrictEqual } from 'node:util';
import { type CacheBreak, countSame, isSame, locateBreak } from '../../context/cache/locate-break.ts';
import { TroupeError } from '../../base/errors.ts';
import { resolveAgent } from '../../actors/conversations/messages.ts';
import type { TurnDeps } from '../../actors/attempt/turn-run.ts';
import { nextPrompt, sentPrompt } from './prompts.ts';

/** One of two turns. */
export interface ComparedTurn {
  /** Id of the turn. */
  turn: TurnId;
  /** How it ended, or `running`. */
  status: TurnTrace['status'];
  /** Provider and model of its last call. Null: no model was asked. */
  model: string | null;
  /** Its answer. Without one, what it had written so far. */
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
  /** The result as the model read it, at most 4,000 characters. */
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

/** A piece of the answers: of both, only of the first (`removed`), or only of the second (`added`). */
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
  /** The change, if one turn repeats the other. Null: neither does. */
  rerun: Rerun | null;
  /** The changes from the first answer to the second. */
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

/** How the turn was forked, if it repeats `of`. */
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

/** Pairs the calls of each tool in order. A call that the second turn lacks takes the place where the first one made it. */
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

/** Stands for the next prompt of the other turn's agent, instead of a turn. */
const NEXT = 'next';

/** Steps to compare. Default: the last of each turn. */
export interface DiffSteps {
  /** Step of the first turn, from 1. Default: the last. */
  stepA?: number | undefined;
  /** Step of the second turn, from 1. Default: the last. */
  stepB?: number | undefined;
}

/**
 * Compares the prompt of turn `a` with that of turn `b`, or with the next prompt. Throws `turn_unknown`, and
 * `event_invalid` for turns of two agents: their prompts have no common history.
 */
export async function diffTurns(
  deps: TurnDeps,
  tenant: TenantId,
  [a, b]: readonly [string, string],
  { stepA, stepB }: DiffSteps,
): Promise<PromptDiff> {
  requireSameAgent(deps, a, b);
  if (b === NEXT && stepB !== undefined) throw invalid('stepB', 'the next prompt has no steps yet');
  const before = await sentPrompt(deps, tenant, a, stepA);
  if (b !== NEXT) return diffPrompts(before, await sentPrompt(deps, tenant, b, stepB));
  const { conversation, agent } = before;
  const runtime = deps.agents.get(resolveAgent(deps.agents, agent));
  if (!runtime) throw new TroupeError('agent_unknown', `there is no agent "${agent}"`);
  return diffPrompts(before, await nextPrompt(deps, { tenant, conversation, agent }, runtime));
}

function requireSameAgent({ agents: { former } }: Pick<TurnDeps, 'agents'>, a: string, b: string): void {
  const [before, after] = [parseTurnId(a), parseTurnId(b)];
  if (!before || !after) return;
  const { conversation, agent } = after;
  const present = (id: AgentId): AgentId => former?.get(id) ?? id;
  if (present(before.agent) === present(agent) && before.conversation === conversation) return;
  throw invalid(
    'a',
    `${a} and ${b} are turns of different agents or conversations: compare ${b} with another turn of @${agent}, such as ${conversation}:${agent}:1`,
  );
}

function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', message, { path });
}

interface LayerDiff {
  /** Name of the layer. */
  name: string;
  /** Whether it differs. */
  change: 'equal' | 'changed' | 'added' | 'removed';
  /** Hashes of both. Null: it is missing. */
  hash: { a: string | null; b: string | null };
  /** `delta` is b minus a. */
  tokens: TokenDiff;
}

/** What differs between two prompts. */
export interface PromptDiff {
  /** The first prompt. */
  a: PromptSide;
  /** The second prompt. */
  b: PromptSide;
  /** Their parts, in order. */
  layers: LayerDiff[];
  /** Their sizes. `delta` is b minus a. */
  tokens: TokenDiff;
  /** Their messages. */
  messages: {
    /** Number of equal leading messages. */
    shared: number;
    /** Index of the first different message; null if all are equal. */
    firstDifference: number | null;
    /** Different messages in order, line by line. */
    changes: MessageChange[];
    /** Number of further differences that are left out to bound the answer. */
    omitted: number;
  };
  /** Whether the tools differ. */
  toolsChanged: boolean;
  /** Why `b` cannot use all that a provider cached of `a`; null if `b` begins with all of `a`. */
  broke: CacheBreak | null;
}

interface TokenDiff {
  /** Tokens of the first. */
  a: number;
  /** Tokens of the second. */
  b: number;
  /** b minus a. */
  delta: number;
}

type PromptSide = Pick<PromptRecord, 'turn' | 'step' | 'agent' | 'provider' | 'model' | 'count' | 'chain'>;

function diffPrompts(a: PromptRecord, b: PromptRecord): PromptDiff {
  const shared = countSame(a.messages, b.messages);
  const isEqual = shared === a.messages.length && shared === b.messages.length;
  return {
    a: promptSide(a),
    b: promptSide(b),
    layers: layersOf(a, b).map((name) => diffLayer(name, layerOf(a, name), layerOf(b, name))),
    tokens: tokenDiff(a.tokens.total, b.tokens.total),
    messages: {
      shared,
      firstDifference: isEqual ? null : shared,
      ...diffMessages(a.messages, b.messages, shared),
    },
    toolsChanged: !isDeepStrictEqual(a.tools, b.tools),
    broke: locateBreak(a, b),
  };
}

function promptSide({ turn, step, agent, provider, model, count, chain }: PromptRecord): PromptSide {
  return { turn, step, agent, provider, model, count, chain };
}

function layersOf(a: PromptRecord, b: PromptRecord): string[] {
  return [...new Set([...a.layers, ...b.layers].map(({ name }) => name))];
}

function layerOf({ layers }: PromptRecord, name: string): PromptLayer | undefined {
  return layers.find((layer) => layer.name === name);
}

function diffLayer(name: string, a: PromptLayer | undefined, b: PromptLayer | undefined): LayerDiff {
  const change = !a ? 'added' : !b ? 'removed' : a.hash === b.hash ? 'equal' : 'changed';
  return {
    name,
    change,
    hash: { a: a?.hash ?? null, b: b?.hash ?? null },
    tokens: tokenDiff(a?.tokens ?? 0, b?.tokens ?? 0),
  };
}

function tokenDiff(a: number, b: number): TokenDiff {
  return { a, b, delta: b - a };
}

/** As in a unified diff: `-` lines are from a, `+` lines from b. Lines count from 1. */
interface LineHunk {
  /** First line in the first text, from 1. */
  aStart: number;
  /** Number of lines in the first text. */
  aLines: number;
  /** First line in the second text, from 1. */
  bStart: number;
  /** Number of lines in the second text. */
  bLines: number;
  /** The lines, each with ` `, `-` or `+` before it. */
  lines: string[];
}

/** A message that differs between the two prompts. */
interface MessageChange {
  /** Index in each prompt; null if the prompt lacks the message. */
  a: number | null;
  /** Index in the second prompt; null if it lacks the message. */
  b: number | null;
  /** Who speaks to the model in it. */
  role: PromptMessage['role'];
  /** What differs, line by line. */
  hunks: LineHunk[];
}

const CONTEXT_LINES = 3;
/** Texts or lists of messages that differ by more edits are not aligned. */
const MAX_LINE_EDITS = 1_000;

/** Limits of the line-by-line part; changes beyond them are only counted. */
const MAX_CHANGES = 1_000;
const MAX_CHARACTERS = 1_000_000;

/** Differences from the message with index `from` on; all before it are equal. */
export function diffMessages(
  a: readonly PromptMessage[],
  b: readonly PromptMessage[],
  from: number,
): { changes: MessageChange[]; omitted: number } {
  const changed = pairs(a.slice(from), b.slice(from));
  const changes: MessageChange[] = [];
  let characters = 0;
  for (const [was, is] of changed) {
    if (changes.length >= MAX_CHANGES || characters >= MAX_CHARACTERS) break;
    const message = is?.message ?? was?.message;
    if (!message) continue;
    const at = (side: Placed | null) => (side === null ? null : side.index + from);
    const [before, after] = [was && clipped(textOf(was.message)), is && clipped(textOf(is.message))];
    characters += (before?.length ?? 0) + (after?.length ?? 0);
    changes.push({ a: at(was), b: at(is), role: message.role, hunks: diffLines(before, after) });
  }
  return { changes, omitted: changed.length - changes.length };
}

/** Maximum number of characters compared per message. Consecutive messages of people are one message and can be long. */
const MAX_TEXT = 256 * 1024;

function clipped(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  return `${text.slice(0, MAX_TEXT)}\n[${text.length - MAX_TEXT} more characters]`;
}

interface Placed {
  index: number;
  message: PromptMessage;
}
type Pair = [was: Placed | null, is: Placed | null];

/** Aligns two lists of messages. Replaced messages are paired in order while their roles agree. */
function pairs(a: PromptMessage[], b: PromptMessage[]): Pair[] {
  const parts = diffArrays(a, b, { comparator: isSame, maxEditLength: MAX_LINE_EDITS }) ?? [
    { value: a, added: false, removed: true },
    { value: b, added: true, removed: false },
  ];
  const found: Pair[] = [];
  const at = { a: 0, b: 0 };
  let removed: Placed[] = [];
  const flush = () => {
    found.push(...removed.map((was): Pair => [was, null]));
    removed = [];
  };
  for (const { value, ...part } of parts) {
    if (part.removed) {
      removed = value.map((message, index) => ({ index: at.a + index, message }));
      at.a += value.length;
      continue;
    }
    if (part.added) {
      for (const [index, message] of value.entries()) {
        const was = removed[0]?.message.role === message.role ? (removed.shift() ?? null) : null;
        found.push([was, { index: at.b + index, message }]);
      }
    } else at.a += value.length;
    at.b += value.length;
    flush();
  }
  flush();
  return found;
}

function diffLines(a: string | null, b: string | null): LineHunk[] {
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_LINE_EDITS };
  // Without a final newline the patch would report its absence.
  const patch = structuredPatch('a', 'b', ended(a), ended(b), undefined, undefined, options);
  if (!patch) return [replaced(a ?? '', b ?? '')];
  return patch.hunks.map(({ oldStart, oldLines, newStart, newLines, lines }) => ({
    aStart: oldStart,
    aLines: oldLines,
    bStart: newStart,
    bLines: newLines,
    lines,
  }));
}

function ended(text: string | null): string {
  return text === null ? '' : `${text}\n`;
}

function replaced(a: string, b: string): LineHunk {
  const [was, is] = [a.split('\n'), b.split('\n')];
  const lines = [...was.map((line) => `-${line}`), ...is.map((line) => `+${line}`)];
  return { aStart: 1, aLines: was.length, bStart: 1, bLines: is.length, lines };
}

/** A message as text for people: its role, its text and its calls. */
function textOf(message: PromptMessage): string {
  const { role, content } = message;
  if (role === 'tool') {
    return [`[${message.name} ${message.call}${message.failed ? ' failed' : ''}]`, content].join('\n');
  }
  if (role === 'user')
    return [content, ...(message.images ?? []).map(({ hash }) => `[image ${hash.slice(0, 12)}]`)].join('\n');
  if (role !== 'assistant') return content;
  const { calls = [], reasoning } = message;
  return [
    ...(reasoning ? [`[reasoning] ${reasoning.text}`] : []),
    ...(content === '' ? [] : [content]),
    ...calls.map(({ id, name, args }) => `→ ${name} ${args} (${id})`),
  ].join('\n');
}
