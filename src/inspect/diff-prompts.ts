import { isDeepStrictEqual } from 'node:util';
import { type CacheBreak, countSame, locateBreak } from '../context/cache/locate-break.ts';
import type { PromptLayer, PromptRecord } from '../events/index.ts';
import { diffMessages, type MessageChange } from './diff-messages.ts';

export interface LayerDiff {
  name: string;
  change: 'equal' | 'changed' | 'added' | 'removed';
  hash: { a: string | null; b: string | null };
  /** `delta` is b minus a. */
  tokens: TokenDiff;
}

export interface PromptDiff {
  a: PromptSide;
  b: PromptSide;
  layers: LayerDiff[];
  tokens: TokenDiff;
  messages: {
    /** How many leading messages are the same. */
    shared: number;
    /** Index of the first message that differs; null when all are the same. */
    firstDifference: number | null;
    /** Those that differ, in order, line by line. */
    changes: MessageChange[];
    /** How many more differ: an answer has room for so many. */
    omitted: number;
  };
  toolsChanged: boolean;
  /** Why what a provider cached of `a` is not all of use for `b`; null where `b` begins with all of it. */
  broke: CacheBreak | null;
}

interface TokenDiff {
  a: number;
  b: number;
  delta: number;
}

type PromptSide = Pick<PromptRecord, 'turn' | 'step' | 'agent' | 'provider' | 'model' | 'count' | 'chain'>;

/** What changed from prompt `a` to prompt `b`. */
export function diffPrompts(a: PromptRecord, b: PromptRecord): PromptDiff {
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
