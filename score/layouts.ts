import { breakpointsOf } from '../src/context/build-prompt.ts';
import {
  type CacheRules,
  cacheRules,
  type CacheBlock,
  type CacheReport,
  type CacheRequest,
  simulateCache,
} from '../src/context/cache/cache-cost.ts';
import { countTokens } from '../src/context/budget/tokens.ts';
import { hashText } from '../src/context/text/hash.ts';
import { type Event, isAbout } from '../src/events/index.ts';

/**
 * The cost of a real log under other layouts of the same prompts, at each vendor. Every answer of the assistant in
 * the log is one request, at the time of the answer.
 */
export const LAYOUTS = [
  'append-only',
  'no live block',
  'time in the system prompt',
  'changing block before the history',
  'moving live block',
  'keep-3 decay, no frontier',
  'keep-3 decay, frontier',
] as const;
export type Layout = (typeof LAYOUTS)[number];

export interface LayoutRow {
  layout: Layout;
  vendor: string;
  /** Share of input tokens read from the cache. */
  hitRate: number;
  /** In fresh input tokens, output included. */
  cost: number;
  /** Cost of the input compared with `append-only` at the same vendor. */
  relative: number;
}

export interface LayoutOptions {
  /** Assumes that caches never expire, to separate the cost of a layout from the cost of pauses in the log. */
  ignoreTtl?: boolean;
}

const VENDORS: readonly CacheRules[] = [
  cacheRules('anthropic', 'claude-sonnet-4-5'),
  cacheRules('openai', 'gpt-5'),
  cacheRules('gemini', 'gemini-2.5-pro'),
  cacheRules('deepseek', 'deepseek-chat'),
];

/** The log has no system prompt; the sizes are those of the pi session, from the usage of its first request. */
const TOOLS: CacheBlock = { hash: 'tools', tokens: 900 };
const SYSTEM: CacheBlock = { hash: 'system', tokens: 700 };
/** The time, a mode banner, a few todos. */
const LIVE_TOKENS = 60;
/** The same as a block before the history. */
const STATE_TOKENS = 60;
const KEPT_RESULTS = 3;
const PLACEHOLDER_TOKENS = 15;

export function scoreLayouts(log: readonly Event[], { ignoreTtl = false }: LayoutOptions = {}): LayoutRow[] {
  const moments = momentsOf(log);
  return VENDORS.flatMap((vendor) => {
    const rules = ignoreTtl ? { ...vendor, ttlMs: Number.POSITIVE_INFINITY } : vendor;
    const reports = LAYOUTS.map((layout) => ({
      layout,
      report: simulateCache(requestsOf(moments, layout), rules),
    }));
    const ours = reports.find(({ layout }) => layout === 'append-only');
    const floor = ours ? inputCost(ours.report, rules) : 0;
    return reports.map(({ layout, report }) => ({
      layout,
      vendor: rules.vendor,
      hitRate: report.total.hitRate,
      cost: report.total.cost,
      relative: inputCost(report, rules) / floor,
    }));
  });
}

function inputCost({ total }: CacheReport, { price }: CacheRules): number {
  return total.cost - total.output * price.output;
}

type Part = CacheBlock & { kind: 'trigger' | 'own' | 'result' };

/** A request, and the log by then. */
interface Moment {
  at: number;
  history: readonly Part[];
  output: number;
}

function momentsOf(log: readonly Event[]): Moment[] {
  const history: Part[] = [];
  const moments: Moment[] = [];
  for (const event of log) {
    const parts = partsOf(event);
    const isAnswer = event.author.kind === 'agent' && event.kind !== 'tool.result' && parts.length > 0;
    if (isAnswer && history.length > 0) {
      const output = parts.reduce((sum, { tokens }) => sum + tokens, 0);
      moments.push({ at: event.at, history: history.slice(), output });
    }
    history.push(...parts);
  }
  return moments;
}

function partsOf(event: Event): Part[] {
  if (!isAbout(event, 'own')) return [];
  switch (event.kind) {
    case 'message':
      return [part(event.author.kind === 'agent' ? 'own' : 'trigger', event, event.body.content)];
    case 'step':
      return [event.body.content, ...event.body.calls.map(({ name, args }) => `${name} ${args}`)]
        .filter((text) => text.trim() !== '')
        .map((text) => part('own', event, text));
    case 'tool.result':
      return [part('result', event, event.body.content)];
    case 'turn.failed':
    case 'turn.aborted':
      return event.body.partial.trim() === '' ? [] : [part('own', event, event.body.partial)];
    case 'handoff':
      return [];
  }
}

function part(kind: Part['kind'], { seq }: Event, text: string): Part {
  return { kind, hash: hashText(`${seq}\n${text}`), tokens: countTokens(text) };
}

function requestsOf(moments: readonly Moment[], layout: Layout): CacheRequest[] {
  let sent: number | null = null;
  return moments.map(({ at, history, output }) => {
    const { system, state, messages, frontier } = laidOut(history, at, layout);
    const blocks = [TOOLS, system, ...state, ...messages];
    // Breakpoints count from the system message, which comes after the tools here.
    const marks = breakpointsOf({
      count: blocks.length - 1,
      turnBegins: null,
      summaryEnds: null,
      frontier,
      sent,
    });
    sent = blocks.length - 2;
    return {
      at,
      key: 'score',
      variant: 'score',
      blocks,
      breakpoints: marks.map((index) => index + 1),
      output,
    };
  });
}

interface LaidOut {
  system: CacheBlock;
  state: readonly CacheBlock[];
  messages: readonly CacheBlock[];
  /** Counted from the system message. */
  frontier: number | null;
}

function laidOut(history: readonly Part[], at: number, layout: Layout): LaidOut {
  const plain: LaidOut = { system: SYSTEM, state: [], messages: history, frontier: null };
  switch (layout) {
    case 'append-only':
      return {
        ...plain,
        messages: history.map((block) => (block.kind === 'trigger' ? withLive(block) : block)),
      };
    case 'no live block':
      return plain;
    case 'time in the system prompt':
      return { ...plain, system: { ...SYSTEM, hash: `system at ${at}` } };
    case 'changing block before the history':
      return { ...plain, state: [{ hash: `state at ${at}`, tokens: STATE_TOKENS }] };
    case 'moving live block': {
      const newest = history.findLastIndex(({ kind }) => kind === 'trigger');
      return {
        ...plain,
        messages: history.map((block, index) => (index === newest ? withLive(block) : block)),
      };
    }
    case 'keep-3 decay, no frontier':
      return { ...plain, messages: decayed(history) };
    case 'keep-3 decay, frontier':
      // The next result to be cleared is the oldest kept one; the message before it has the same index as in the
      // history.
      return { ...plain, messages: decayed(history), frontier: resultsOf(history).at(-KEPT_RESULTS) ?? null };
  }
}

/** Appended to the trigger's message; its content differs for each trigger. */
function withLive({ hash, tokens }: CacheBlock): CacheBlock {
  return { hash: `${hash} live`, tokens: tokens + LIVE_TOKENS };
}

/** All results but the newest are placeholders. */
function decayed(history: readonly Part[]): CacheBlock[] {
  const old = new Set(resultsOf(history).slice(0, -KEPT_RESULTS));
  return history.map((block, index) =>
    old.has(index)
      ? { hash: `${block.hash} cleared`, tokens: Math.min(block.tokens, PLACEHOLDER_TOKENS) }
      : block,
  );
}

function resultsOf(history: readonly Part[]): number[] {
  return history.flatMap(({ kind }, index) => (kind === 'result' ? [index] : []));
}
