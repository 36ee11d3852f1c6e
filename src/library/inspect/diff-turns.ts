import { isDeepStrictEqual } from 'node:util';
import { diffArrays, structuredPatch } from 'diff';
import { type CacheBreak, countSame, isSame, locateBreak } from '../../context/cache/locate-break.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  parseTurnId,
  type PromptLayer,
  type PromptMessage,
  type PromptRecord,
  type TenantId,
} from '../../events/index.ts';
import { resolveAgent } from '../../actors/conversations/messages.ts';
import type { TurnDeps } from '../../actors/attempt/turn-run.ts';
import { nextPrompt, sentPrompt } from './prompts.ts';

/** In place of a turn: the prompt that the agent of the other turn would be sent now. */
export const NEXT = 'next';

/** Steps to compare. Default: the last of each turn. */
export interface DiffSteps {
  /** Step of the first turn, from 1. Default: the last. */
  stepA?: number | undefined;
  /** Step of the second turn, from 1. Default: the last. */
  stepB?: number | undefined;
}

/**
 * The difference from the prompt of turn `a` to that of turn `b`, or to the next prompt. Throws `turn_unknown`, and
 * `event_invalid` for turns of two agents: their prompts have no common history.
 */
export async function diffTurns(
  deps: TurnDeps,
  tenant: TenantId,
  [a, b]: readonly [string, string],
  { stepA, stepB }: DiffSteps,
): Promise<PromptDiff> {
  requireSameAgent(a, b);
  if (b === NEXT && stepB !== undefined) throw invalid('stepB', 'the next prompt has no steps yet');
  const before = await sentPrompt(deps, tenant, a, stepA);
  if (b !== NEXT) return diffPrompts(before, await sentPrompt(deps, tenant, b, stepB));
  const { conversation, agent } = before;
  const runtime = deps.agents.get(resolveAgent(deps.agents, agent));
  if (!runtime) throw new TroupeError('agent_unknown', `there is no agent "${agent}"`);
  return diffPrompts(before, await nextPrompt(deps, { tenant, conversation, agent }, runtime));
}

function requireSameAgent(a: string, b: string): void {
  const [before, after] = [parseTurnId(a), parseTurnId(b)];
  if (!before || !after) return;
  const { conversation, agent } = after;
  if (before.agent === agent && before.conversation === conversation) return;
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

/** The difference from prompt `a` to prompt `b`. */
function diffPrompts(a: PromptRecord, b: PromptRecord): PromptDiff {
  const shared = countSame(a.messages, b.messages);
  const isEqual = shared === a.messages.length && shared === b.messages.length;
  return {
    a: sideOf(a),
    b: sideOf(b),
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

function sideOf({ turn, step, agent, provider, model, count, chain }: PromptRecord): PromptSide {
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
const MAX_EDITS = 1_000;

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
  const parts = diffArrays(a, b, { comparator: isSame, maxEditLength: MAX_EDITS }) ?? [
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
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_EDITS };
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
