import { isDeepStrictEqual } from 'node:util';
import type { PromptLayer, PromptRecord } from '../events/index.ts';

export interface LayerDiff {
  name: string;
  change: 'equal' | 'changed' | 'added' | 'removed';
  hash: { a: string | null; b: string | null };
  /** `delta` is b minus a. */
  tokens: { a: number; b: number; delta: number };
}

export interface PromptDiff {
  a: PromptSide;
  b: PromptSide;
  layers: LayerDiff[];
  tokens: { a: number; b: number; delta: number };
  messages: {
    /** How many leading messages are the same: what a prefix cache can reuse. */
    shared: number;
    /** Index of the first message that differs; null when all are the same. */
    firstDifference: number | null;
  };
  toolsChanged: boolean;
}

type PromptSide = Pick<PromptRecord, 'turn' | 'step' | 'agent' | 'provider' | 'model' | 'count' | 'chain'>;

/** What changed from prompt `a` to prompt `b`. */
export function diffPrompts(a: PromptRecord, b: PromptRecord): PromptDiff {
  const shared = sharedMessages(a, b);
  const isSame = shared === a.messages.length && shared === b.messages.length;
  return {
    a: sideOf(a),
    b: sideOf(b),
    layers: layersOf(a, b).map((name) => diffLayer(name, layerOf(a, name), layerOf(b, name))),
    tokens: tokenDiff(a.tokens.total, b.tokens.total),
    messages: { shared, firstDifference: isSame ? null : shared },
    toolsChanged: !isDeepStrictEqual(a.tools, b.tools),
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

function tokenDiff(a: number, b: number): { a: number; b: number; delta: number } {
  return { a, b, delta: b - a };
}

function sharedMessages(a: PromptRecord, b: PromptRecord): number {
  const differs = a.messages.findIndex((message, index) => !isDeepStrictEqual(message, b.messages[index]));
  return differs === -1 ? a.messages.length : differs;
}
