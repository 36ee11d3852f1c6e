import type { LayerName, PromptLayer, PromptMessage, PromptRecord, ToolSpec } from '../../events/index.ts';
import { imagesText } from '../text/event-text.ts';

/** A logged change in force when a prompt was rendered: an adopted compaction, or pruned outputs. */
interface Cut {
  event: string;
  kind: 'adopt' | 'prune';
}

type CutPrompt = Pick<PromptRecord, 'mode' | 'provider' | 'model' | 'layers' | 'messages' | 'tools'> & {
  readonly cuts?: readonly Cut[];
};

export interface CacheBreak {
  /** The layer of the prompt that differs. */
  layer: LayerName;
  /** Index of the first message that differs; null if the break is not in a message. */
  message: number | null;
  /** Id of the event that caused it; null if there is none, or if it is not in the log yet. */
  event: string | null;
  /** Text for people that says why it differs. */
  cause: string;
}

/**
 * Why a provider cannot reuse all of `before` for `after`; null if `after` begins with all of it. Checks in the order
 * in which providers read: model, tools, system text, messages. A delta extends the memory of the provider's session, so for
 * deltas the result is null.
 */
export function locateBreak(before: CutPrompt, after: CutPrompt): CacheBreak | null {
  if (before.mode === 'delta' || after.mode === 'delta') return null;
  return (
    modelBreak(before, after) ??
    toolsBreak(before, after) ??
    systemBreak(before, after) ??
    messageBreak(before, after)
  );
}

function modelBreak(before: CutPrompt, after: CutPrompt): CacheBreak | null {
  const [was, is] = [before, after].map(({ provider, model }) => `${provider}/${model}`);
  if (was === is) return null;
  const first = after.layers[0]?.name ?? 'rules';
  return { layer: first, message: null, event: null, cause: `model changed from ${was} to ${is}` };
}

function toolsBreak(before: CutPrompt, after: CutPrompt): CacheBreak | null {
  const [was, is] = [before.tools.map(toolText), after.tools.map(toolText)];
  if (was.length === is.length && was.every((text, index) => text === is[index])) return null;
  const event = sourceOf(after, 'tools');
  const cause = `tools changed: ${toolNews(before.tools, after.tools)}${eventSuffix(event)}`;
  return { layer: 'tools', message: null, event, cause };
}

function toolText(tool: ToolSpec): string {
  return JSON.stringify(tool);
}

/** The changed tools, as `+added -removed ~changed`. A changed order is also a change. */
function toolNews(before: readonly ToolSpec[], after: readonly ToolSpec[]): string {
  const was = new Map(before.map((tool) => [tool.name, toolText(tool)]));
  const is = new Set(after.map(({ name }) => name));
  const news = [
    ...after.filter(({ name }) => !was.has(name)).map(({ name }) => `+${name}`),
    ...before.filter(({ name }) => !is.has(name)).map(({ name }) => `-${name}`),
    ...after
      .filter((tool) => (was.get(tool.name) ?? toolText(tool)) !== toolText(tool))
      .map(({ name }) => `~${name}`),
  ];
  return news.length === 0 ? 'their order' : news.join(' ');
}

function systemBreak(before: CutPrompt, after: CutPrompt): CacheBreak | null {
  const [was, is] = [before.messages[0], after.messages[0]];
  if (was?.role !== 'system' || is?.role !== 'system' || isSame(was, is)) return null;
  const changed = after.layers.find(
    (layer) =>
      layer.stability === 'epoch' && layer.name !== 'tools' && hashOf(before, layer.name) !== layer.hash,
  );
  const name = changed?.name ?? 'rules';
  const event = changed ? sourceOf(after, name) : null;
  const cause = changed
    ? `${name} changed${eventSuffix(event)}`
    : 'system text changed, and no layer says so';
  return { layer: name, message: 0, event, cause };
}

function messageBreak(before: CutPrompt, after: CutPrompt): CacheBreak | null {
  const message = countSame(before.messages, after.messages);
  if (message >= lastingCount(before)) return null;
  const known = new Set(before.cuts?.map(({ event }) => event));
  const news = after.cuts?.filter(({ event }) => !known.has(event)) ?? [];
  // An adoption changes the view from its start, so it is the cause even if there was a prune too.
  const cut = news.find(({ kind }) => kind === 'adopt') ?? news[0];
  const event = cut?.event ?? null;
  if (cut?.kind === 'adopt') return { layer: 'summary', message, event, cause: `summary adopted (${event})` };
  if (cut) return { layer: 'history', message, event, cause: `outputs pruned (${event})` };
  const how = message < after.messages.length ? 'changed' : 'is gone';
  return { layer: 'history', message, event, cause: `message ${message} ${how}` };
}

/** Number of messages with which later requests must begin: all except a note. */
export function lastingCount({ messages, layers }: Pick<PromptRecord, 'messages' | 'layers'>): number {
  return messages.length - (layers.some(({ name }) => name === 'note') ? 1 : 0);
}

/** Number of equal leading messages. */
export function countSame(before: readonly PromptMessage[], after: readonly PromptMessage[]): number {
  const differs = before.findIndex((was, index) => {
    const is = after[index];
    return is === undefined || !isSame(was, is);
  });
  return differs === -1 ? before.length : differs;
}

/**
 * Compares what is sent. Ignores seqs, which arrive later for an agent's own words. Compares identity first, because warm
 * prompts share their messages.
 */
export function isSame(a: PromptMessage, b: PromptMessage): boolean {
  if (a === b) return true;
  if (a.content !== b.content) return false;
  if (a.role === 'tool')
    return b.role === 'tool' && a.call === b.call && a.name === b.name && a.failed === b.failed;
  if (a.role === 'user' && b.role === 'user') return imagesText(a.images) === imagesText(b.images);
  if (a.role !== 'assistant' || b.role !== 'assistant') return a.role === b.role;
  return JSON.stringify([a.calls, a.reasoning]) === JSON.stringify([b.calls, b.reasoning]);
}

function layerOf({ layers }: CutPrompt, name: LayerName): PromptLayer | undefined {
  return layers.find((layer) => layer.name === name);
}

function hashOf(prompt: CutPrompt, name: LayerName): string | null {
  return layerOf(prompt, name)?.hash ?? null;
}

/** Id of the baseline event that froze a layer; null if it is not in the log yet. */
function sourceOf(prompt: CutPrompt, name: LayerName): string | null {
  const source = layerOf(prompt, name)?.source;
  return source === undefined || source === 'next' ? null : source;
}

function eventSuffix(event: string | null): string {
  return event === null ? '' : ` (${event})`;
}
