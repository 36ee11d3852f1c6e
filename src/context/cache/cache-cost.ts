import type { ImageRef, PromptMessage, PromptRecord, ToolSpec } from '../../events/index.ts';
import { IMAGE_TOKENS } from '../budget/tokens.ts';
import { hashSteps, hashText } from '../text/hash.ts';
import { atOnce, type Steps } from '../text/steps.ts';

type Count = (text: string) => number;

type CachedPrompt = Pick<
  PromptRecord,
  'conversation' | 'agent' | 'provider' | 'model' | 'tools' | 'messages' | 'breakpoints'
>;

interface CacheFacts {
  at: number;
  /** Tokens of the answer. */
  output: number;
  count: Count;
}

/**
 * A prompt as the blocks that its provider sees: the tools, the system text, then for each message its text, each
 * call and each result. Blocks are cached per message, so a long log is counted once and not once per request.
 */
export function cacheRequestOf(prompt: CachedPrompt, { at, output, count }: CacheFacts): CacheRequest {
  const memo = memoOf(count);
  const blocks: CacheBlock[] = [];
  /** Index of the last block of each message, or of the message before it if it has none. */
  const ends: number[] = [];
  const tools = toolsBlock(prompt.tools, memo, count);
  if (tools) blocks.push(tools);
  for (const message of prompt.messages) {
    const { reasoning, rest } =
      message.role === 'system' ? systemBlocks(message, memo, count) : partsOf(message, memo, count);
    if (reasoning && isOwnReasoning(message, prompt)) blocks.push(reasoning);
    for (const block of rest) blocks.push(block);
    ends.push(blocks.length - 1);
  }
  const marked = prompt.breakpoints.map((index) => ends[index] ?? -1).filter((end) => end >= 0);
  return {
    at,
    key: `${prompt.conversation}/${prompt.agent}`,
    variant: hashText(JSON.stringify([prompt.provider, prompt.model, tools?.hash ?? null])),
    blocks,
    breakpoints: [...new Set(marked)].toSorted((a, b) => a - b),
    output,
  };
}

/** Counts messages in advance and in steps, because counting a long log at once would block other work. */
export function* countMessages(messages: readonly PromptMessage[], count: Count): Steps<void> {
  const memo = memoOf(count);
  for (const message of messages) {
    if (message.role === 'system' || memo.messages.has(message)) continue;
    memo.messages.set(message, yield* splitMessage(message, count));
  }
}

interface Parts {
  /** Reasoning, which is sent only to the model that signed it. */
  reasoning: CacheBlock | null;
  rest: readonly CacheBlock[];
}

/** Caches by object identity: prompts share their messages and tools. The system message is new in each prompt. */
interface Memo {
  messages: WeakMap<PromptMessage, Parts>;
  tools: WeakMap<ToolSpec, CacheBlock>;
  system: { text: string; parts: Parts } | null;
}

const MEMOS = new WeakMap<Count, Memo>();

function memoOf(count: Count): Memo {
  const known = MEMOS.get(count);
  if (known) return known;
  const memo: Memo = { messages: new WeakMap(), tools: new WeakMap(), system: null };
  MEMOS.set(count, memo);
  return memo;
}

function toolsBlock(tools: readonly ToolSpec[], memo: Memo, count: Count): CacheBlock | null {
  if (tools.length === 0) return null;
  const each = tools.map((tool) => {
    const block = memo.tools.get(tool) ?? atOnce(blockOf('tool', JSON.stringify(tool), count));
    memo.tools.set(tool, block);
    return block;
  });
  return {
    hash: hashText(each.map(({ hash }) => hash).join('\n')),
    tokens: each.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

function systemBlocks(message: PromptMessage, memo: Memo, count: Count): Parts {
  if (memo.system?.text !== message.content) {
    memo.system = { text: message.content, parts: atOnce(splitMessage(message, count)) };
  }
  return memo.system.parts;
}

function partsOf(message: PromptMessage, memo: Memo, count: Count): Parts {
  const known = memo.messages.get(message);
  if (known) return known;
  const parts = atOnce(splitMessage(message, count));
  memo.messages.set(message, parts);
  return parts;
}

function* splitMessage(message: PromptMessage, count: Count): Steps<Parts> {
  const { role, content } = message;
  if (role === 'tool') {
    const { call, failed } = message;
    return { reasoning: null, rest: [yield* blockOf(`tool ${call} ${failed}`, content, count)] };
  }
  const text = content.trim() === '' ? [] : [yield* blockOf(role, content, count)];
  if (role === 'user') return { reasoning: null, rest: [...imageBlocks(message.images), ...text] };
  if (role !== 'assistant') return { reasoning: null, rest: text };
  const { reasoning, calls = [] } = message;
  const signed = reasoning?.signature === undefined ? null : `${reasoning.text}\n${reasoning.signature}`;
  const rest = [...text];
  for (const { id, name, args } of calls) rest.push(yield* blockOf(`call ${id}`, `${name} ${args}`, count));
  return { reasoning: signed === null ? null : yield* blockOf('reasoning', signed, count), rest };
}

/** The blocks of images. Adapters send images before the text. */
function imageBlocks(images: readonly ImageRef[] = []): CacheBlock[] {
  return images.map(({ hash }) => ({ hash: hashText(`image\n${hash}`), tokens: IMAGE_TOKENS }));
}

function* blockOf(role: string, text: string, count: Count): Steps<CacheBlock> {
  const hash = yield* hashSteps([`${role}\n`, text]);
  const tokens = count(text);
  // Counting takes several times as long as hashing, hence the factor.
  yield 4 * text.length;
  return { hash, tokens };
}

function isOwnReasoning(message: PromptMessage, { provider, model }: CachedPrompt): boolean {
  if (message.role !== 'assistant') return false;
  return message.reasoning?.provider === provider && message.reasoning.model === model;
}

/** A request as a vendor's cache sees it. */
export interface CacheRequest {
  /** Time, ms. Ascending over the requests. */
  readonly at: number;
  /** Routing key, for vendors that route by key. */
  readonly key: string;
  /** Hash of everything else that must be equal: model, effort, thinking mode, tool set. */
  readonly variant: string;
  readonly blocks: readonly CacheBlock[];
  /** Indexes of the blocks after which a breakpoint is set, ascending. For explicit caching. */
  readonly breakpoints: readonly number[];
  /** Tokens of the answer. */
  readonly output: number;
}

export interface CacheBlock {
  readonly hash: string;
  readonly tokens: number;
}

export interface CacheOutcome {
  /** `read` + `written` + `fresh`. */
  readonly input: number;
  /** Tokens read from the cache. */
  readonly read: number;
  /** Tokens paid at the write price; 0 for vendors that write for free. */
  readonly written: number;
  /** Tokens that were neither read nor written. */
  readonly fresh: number;
  /** Cost in the price of fresh input tokens, output included. */
  readonly cost: number;
  /** Index of the first block that differs from the longest live prefix; null if no live prefix continues differently. */
  readonly brokeAt: number | null;
}

export interface CacheReport {
  readonly requests: readonly CacheOutcome[];
  readonly total: Omit<CacheOutcome, 'brokeAt'> & { readonly output: number; readonly hitRate: number };
}

/** Simulates a vendor's cache over a sequence of requests, each answered before the next is sent. */
export function simulateCache(requests: readonly CacheRequest[], rules: CacheRules): CacheReport {
  const roots = new Map<string, PrefixNode>();
  const outcomes = requests.map((request) => {
    const key = rules.routedByKey ? request.key : '';
    const root = roots.get(key) ?? prefixNode();
    roots.set(key, root);
    return send(root, request, rules);
  });
  const sum = (part: (outcome: CacheOutcome) => number) =>
    outcomes.reduce((total, one) => total + part(one), 0);
  const input = sum((one) => one.input);
  const read = sum((one) => one.read);
  return {
    requests: outcomes,
    total: {
      input,
      read,
      written: sum((one) => one.written),
      fresh: sum((one) => one.fresh),
      output: requests.reduce((total, { output }) => total + output, 0),
      cost: sum((one) => one.cost),
      hitRate: input === 0 ? 0 : read / input,
    },
  };
}

interface Path {
  readonly nodes: readonly PrefixNode[];
  /** `sums[n]` is the token count of the first n blocks. */
  readonly sums: readonly number[];
  /** Number of leading blocks that were sent before and are still alive. */
  readonly shared: number;
  readonly brokeAt: number | null;
}

function send(root: PrefixNode, request: CacheRequest, rules: CacheRules): CacheOutcome {
  const alive = request.at - rules.ttlMs;
  const path = walk(root, request, alive);
  const input = path.sums.at(-1) ?? 0;
  const { read, written } = readAndWrite(path, request, rules, alive);
  const fresh = input - read - written;
  const { price } = rules;
  const cost = read * price.read + written * price.write + fresh + request.output * price.output;
  return { input, read, written, fresh, cost, brokeAt: path.brokeAt };
}

function walk(root: PrefixNode, { at, variant, blocks, breakpoints }: CacheRequest, alive: number): Path {
  const top = root.children.get(variant) ?? prefixNode();
  root.children.set(variant, top);
  const stops = [...breakpoints.map((index) => index + 1), blocks.length];
  const nodes = descend(top, blocks, stops);
  const way = [root, top, ...nodes];
  const dead = way.findIndex(({ sentAt }, index) => index > 0 && sentAt <= alive);
  const last = way[dead === -1 ? way.length - 1 : dead - 1] ?? root;
  const brokeAt = dead !== -1 && wentOn(last, alive) ? last.to : null;
  for (const node of way) node.sentAt = at;
  const sums = [0];
  let sum = 0;
  for (const { tokens } of blocks) sums.push((sum += tokens));
  return { nodes, sums, shared: last.to, brokeAt };
}

interface Hit {
  read: number;
  written: number;
}

function readAndWrite(path: Path, request: CacheRequest, rules: CacheRules, alive: number): Hit {
  switch (rules.match.kind) {
    case 'breakpoints':
      return atBreakpoints(path, request, { ...rules, ...rules.match }, alive);
    case 'longest-prefix':
      return { read: readable(path.sums[path.shared] ?? 0, rules), written: 0 };
    case 'whole-requests':
      return { read: readable(longestUnit(path, request, alive), rules), written: 0 };
  }
}

function readable(tokens: number, { minimumTokens, stepTokens }: CacheRules): number {
  return tokens < minimumTokens ? 0 : tokens - (tokens % stepTokens);
}

function atBreakpoints(
  { nodes, sums }: Path,
  { at, breakpoints }: CacheRequest,
  { minimumTokens, most, lookbackBlocks }: { minimumTokens: number; most: number; lookbackBlocks: number },
  alive: number,
): Hit {
  const size = (count: number) => sums[count] ?? 0;
  const ends = breakpoints.map((index) => index + 1).slice(0, most);
  const written = ends.filter((end) => size(end) >= minimumTokens);
  const found = written.map((end) =>
    nodes.findLast(({ to, cachedAt }) => to <= end && to >= end - lookbackBlocks && cachedAt > alive),
  );
  const best = found.findLast((node) => node !== undefined);
  if (best) best.cachedAt = at;
  for (const node of nodes) if (written.includes(node.to)) node.cachedAt = at;
  const read = size(best?.to ?? 0);
  return { read, written: Math.max(0, size(written.at(-1) ?? 0) - read) };
}

/** Tokens of the longest earlier request, with or without its answer, with which this request begins. */
function longestUnit({ nodes, sums }: Path, { at, output }: CacheRequest, alive: number): number {
  const unit = nodes.findLast(({ cachedAt }) => cachedAt > alive);
  const input = sums[unit?.to ?? 0] ?? 0;
  // The blocks after an earlier request are its answer if they have its exact size. Otherwise only its input counts.
  const whole = input + (unit?.answerTokens ?? 0);
  if (unit) unit.cachedAt = at;
  const end = nodes.at(-1);
  if (end) {
    end.cachedAt = at;
    end.answerTokens = output;
  }
  return sums.includes(whole) ? whole : input;
}

/**
 * All prefixes sent so far, as a compressed tree of blocks. Requests with the same beginning share a path; nodes exist only
 * where requests diverge, end or have a breakpoint. So a request costs one comparison per shared block and nothing for the
 * rest.
 */
interface PrefixNode {
  /** The path from the parent to here is `blocks[from]` to `blocks[to - 1]`, counted from the start of the request. */
  readonly blocks: readonly { readonly hash: string }[];
  from: number;
  readonly to: number;
  readonly children: Map<string, PrefixNode>;
  /** Time of the last request through here; -Infinity if none. */
  sentAt: number;
  /** Time of the last use of the prefix up to here as one cached unit; -Infinity if none. */
  cachedAt: number;
  answerTokens: number;
}

type Blocks = PrefixNode['blocks'];

function prefixNode(blocks: Blocks = [], from = 0, to = 0): PrefixNode {
  return { blocks, from, to, children: new Map(), sentAt: -Infinity, cachedAt: -Infinity, answerTokens: 0 };
}

/** The nodes on a request's path, with one at each of `stops`, which ascend to its end. Creates missing nodes. */
function descend(root: PrefixNode, blocks: Blocks, stops: readonly number[]): PrefixNode[] {
  const path: PrefixNode[] = [];
  let node = root;
  for (const stop of stops) {
    while (node.to < stop) {
      node = step(node, blocks, stop);
      path.push(node);
    }
  }
  return path;
}

function step(parent: PrefixNode, blocks: Blocks, stop: number): PrefixNode {
  const first = blocks[parent.to]?.hash ?? '';
  const child = parent.children.get(first);
  if (!child) {
    const added = prefixNode(blocks, parent.to, stop);
    parent.children.set(first, added);
    return added;
  }
  const end = Math.min(child.to, stop);
  let same = child.from + 1;
  while (same < end && child.blocks[same]?.hash === blocks[same]?.hash) same += 1;
  return same === child.to ? child : splitNode(parent, child, same);
}

function splitNode(parent: PrefixNode, child: PrefixNode, at: number): PrefixNode {
  const upper = prefixNode(child.blocks, child.from, at);
  upper.sentAt = child.sentAt;
  parent.children.set(child.blocks[child.from]?.hash ?? '', upper);
  upper.children.set(child.blocks[at]?.hash ?? '', child);
  child.from = at;
  return upper;
}

function wentOn({ children }: PrefixNode, since: number): boolean {
  return [...children.values()].some(({ sentAt }) => sentAt > since);
}

/**
 * How each vendor caches prompts, with prices relative to one fresh input token. As published by the vendors in autumn
 * 2026; comments mark assumptions. For all vendors a changed byte invalidates everything after it, and another model,
 * effort, thinking mode or tool set has a separate cache.
 */
export type CacheVendor = 'anthropic' | 'openai' | 'gemini' | 'deepseek';

export interface CacheRules {
  readonly vendor: CacheVendor;
  readonly match: CacheMatch;
  /** Shorter prefixes are neither written nor read. */
  readonly minimumTokens: number;
  /** Reads are rounded down to a multiple of this. */
  readonly stepTokens: number;
  /** Lifetime since the last use, ms. A read counts as a use. */
  readonly ttlMs: number;
  /** Requests with different cache keys share nothing. */
  readonly routedByKey: boolean;
  /** `write` is the price of tokens written to the cache, `output` of generated tokens. */
  readonly price: { readonly read: number; readonly write: number; readonly output: number };
}

/**
 * breakpoints      caches only prefixes that end at a breakpoint; a read walks back from each breakpoint
 * longest-prefix   caches the longest prefix that a request has in common with an earlier one
 * whole-requests   caches only whole earlier requests: their input, or their input and output
 */
type CacheMatch =
  | { readonly kind: 'breakpoints'; readonly most: number; readonly lookbackBlocks: number }
  | { readonly kind: 'longest-prefix' }
  | { readonly kind: 'whole-requests' };

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The first matching pattern decides. */
type ByModel = readonly (readonly [RegExp, number])[];

const ANTHROPIC_MINIMUM: ByModel = [
  [/(opus|fable|mythos)-5/, 512],
  [/opus-4-[567]|haiku-4/, 4_096],
  [/haiku/, 2_048],
];
const OPENAI_READ: ByModel = [
  [/gpt-5/, 0.1],
  [/gpt-4\.1|o3|o4/, 0.25],
];
const OPENAI_OUTPUT: ByModel = [
  [/gpt-5\.[4-9]/, 6],
  [/gpt-5/, 8],
];
const GEMINI_MINIMUM: ByModel = [
  [/gemini-2\.5/, 2_048],
  [/gemini-3-flash/, 1_024],
];
const GEMINI_OUTPUT: ByModel = [[/gemini-3/, 6]];

interface CacheOptions {
  /** Anthropic only: entries live an hour and cost 2x to write. */
  hour?: boolean;
}

export function cacheRules(
  vendor: CacheVendor,
  model: string,
  { hour = false }: CacheOptions = {},
): CacheRules {
  switch (vendor) {
    case 'anthropic':
      return {
        vendor,
        match: { kind: 'breakpoints', most: 4, lookbackBlocks: 20 },
        minimumTokens: lookUp(ANTHROPIC_MINIMUM, model, 1_024),
        stepTokens: 1,
        ttlMs: hour ? HOUR_MS : 5 * MINUTE_MS,
        routedByKey: false,
        price: { read: 0.1, write: hour ? 2 : 1.25, output: 5 },
      };
    case 'openai':
      return {
        vendor,
        match: { kind: 'longest-prefix' },
        minimumTokens: 1_024,
        stepTokens: 128,
        ttlMs: 10 * MINUTE_MS,
        routedByKey: true,
        price: { read: lookUp(OPENAI_READ, model, 0.5), write: 1, output: lookUp(OPENAI_OUTPUT, model, 4) },
      };
    case 'gemini':
      return {
        vendor,
        match: { kind: 'longest-prefix' },
        minimumTokens: lookUp(GEMINI_MINIMUM, model, 4_096),
        stepTokens: 1,
        // Published only as "a short amount of time". Assumed to equal OpenAI's.
        ttlMs: 10 * MINUTE_MS,
        routedByKey: false,
        price: { read: 0.1, write: 1, output: lookUp(GEMINI_OUTPUT, model, 8) },
      };
    case 'deepseek':
      return {
        vendor,
        // DeepSeek also caches prefixes shared by several requests, and pieces of very long requests, but does not publish
        // where they end. Both are ignored, so that no layout scores well by luck.
        match: { kind: 'whole-requests' },
        minimumTokens: 64,
        stepTokens: 64,
        // Published as "a few hours to a few days".
        ttlMs: 6 * HOUR_MS,
        routedByKey: false,
        price: { read: 0.03, write: 1, output: 2 },
      };
  }
}

function lookUp(table: ByModel, model: string, otherwise: number): number {
  return table.find(([pattern]) => pattern.test(model))?.[1] ?? otherwise;
}
