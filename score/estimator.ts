import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  type Calibration,
  emptyCalibration,
  estimate,
  kindOf,
  type KindTokens,
  NO_TOKENS,
  observe,
  sumOf,
  type UsageAnchor,
  countTokens,
  FRAME_TOKENS,
} from '../src/context/budget/tokens.ts';
import type { PromptMessage } from '../src/events/index.ts';
import { DATA, HAS_DATA } from '../test/support/real-logs.ts';

/**
 * Distance between the estimate of a request and the provider's report, on a real session. As in a running system,
 * each request is estimated from the earlier ones, and then learnt from.
 */
export interface EstimatorRow {
  /** `provider/model`. */
  model: string;
  how: 'not calibrated' | 'no anchor' | 'anchor' | 'anchor 25 requests old';
  /** Number of requests, not counting the first three. */
  requests: number;
  /** Shares of the reported count. */
  p50: number;
  p95: number;
  max: number;
}

export interface CountingRow {
  text: string;
  characters: number;
  tokens: number;
  ms: number;
}

interface Request {
  model: string;
  kinds: KindTokens;
  reported: number;
}

const FIRST_SCORED = 4;
const OLD = 25;

/** Empty without the data. */
export async function scoreEstimator(): Promise<EstimatorRow[]> {
  if (!HAS_DATA) return [];
  const requests = readRequests(path.join(DATA, 'pi-large-session.jsonl'));
  const models = [...new Set(requests.map(({ model }) => model))];
  return models.flatMap((model) =>
    scoreModel(
      model,
      requests.filter((each) => each.model === model),
    ),
  );
}

function scoreModel(model: string, requests: readonly Request[]): EstimatorRow[] {
  const errors: Record<EstimatorRow['how'], number[]> = {
    'not calibrated': [],
    'no anchor': [],
    anchor: [],
    'anchor 25 requests old': [],
  };
  let state: Calibration = emptyCalibration();
  for (const [index, request] of requests.entries()) {
    if (index >= FIRST_SCORED - 1) {
      const note = (how: EstimatorRow['how'], tokens: number) =>
        errors[how].push(Math.abs(tokens - request.reported) / request.reported);
      const from = (anchor: UsageAnchor | null) => estimate(state, { kinds: request.kinds, anchor }).tokens;
      note('not calibrated', sumOf(request.kinds));
      note('no anchor', from(null));
      note('anchor', from(requests[index - 1] ?? null));
      if (index >= OLD) note('anchor 25 requests old', from(requests[index - OLD] ?? null));
    }
    state = observe(state, request);
  }
  return (Object.keys(errors) as EstimatorRow['how'][]).map((how) => ({
    model,
    how,
    ...spreadOf(errors[how]),
  }));
}

function spreadOf(errors: readonly number[]): Pick<EstimatorRow, 'requests' | 'p50' | 'p95' | 'max'> {
  const sorted = errors.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
  return { requests: sorted.length, p50: at(0.5), p95: at(0.95), max: at(1) };
}

/**
 * The requests of a pi session. Its log lacks the system prompt and tools, so `system` is 0 and their tokens must be
 * learnt as the provider's overhead. The agent does not resend aborted or failed answers.
 */
function readRequests(file: string): Request[] {
  const requests: Request[] = [];
  let kinds = NO_TOKENS;
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const entry = line === '' ? null : (JSON.parse(line) as PiEntry);
    if (entry?.type !== 'message' || !entry.message) continue;
    const { message } = entry;
    if (message.role === 'assistant' && message.usage) {
      const { input, cacheRead, cacheWrite } = message.usage;
      const reported = input + cacheRead + cacheWrite;
      if (reported > 0) requests.push({ model: `${message.provider}/${message.model}`, kinds, reported });
    }
    if (message.stopReason === 'aborted' || message.stopReason === 'error') continue;
    const sent = asSent(message);
    const kind = kindOf(sent);
    kinds = { ...kinds, [kind]: kinds[kind] + tokensOf(sent) };
  }
  return requests;
}

interface PiEntry {
  type: string;
  message?: {
    role: 'user' | 'assistant' | 'toolResult';
    content: { type: string; text?: string; id?: string; name?: string; arguments?: unknown }[];
    provider?: string;
    model?: string;
    stopReason?: string;
    usage?: { input: number; cacheRead: number; cacheWrite: number };
  };
}

function asSent({ role, content: parts }: NonNullable<PiEntry['message']>): PromptMessage {
  const content = parts.map(({ text }) => text ?? '').join('');
  if (role === 'user') return { role, content, seqs: [] };
  if (role === 'toolResult') return { role: 'tool', call: '', name: '', content, failed: false, seqs: [] };
  const calls = parts
    .filter(({ type }) => type === 'toolCall')
    .map((part) => ({ id: part.id ?? '', name: part.name ?? '', args: JSON.stringify(part.arguments) }));
  return { role, content, seqs: [], ...(calls.length > 0 && { calls }) };
}

/** The count that an event gets when it is appended. */
function tokensOf(message: PromptMessage): number {
  const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
  const text = [message.content, ...calls.map(({ name, args }) => `${name} ${args}`)].join('\n');
  return countTokens(text) + FRAME_TOKENS;
}

const CHARACTERS = 1_000_000;

/** Time to count 1 MB of text that is slow for tokenizers; the tokenizer is already loaded. */
export function scoreCounting(): CountingRow[] {
  const random = randomNumbers();
  const of = (unit: string) => unit.repeat(Math.ceil(CHARACTERS / unit.length));
  const any = (from: number, count: number) => {
    const parts: string[] = [];
    for (let length = 0; length < CHARACTERS; length += parts.at(-1)?.length ?? 1)
      parts.push(String.fromCodePoint(from + Math.floor(random() * count)));
    return parts.join('');
  };
  const texts: Record<string, string> = {
    'English words': of('The quick brown fox jumps over the lazy dog, and then it stops. '),
    'one letter': of('a'),
    'random letters': any(0x61, 26),
    'random base64': Buffer.from(any(0x20, 95)).toString('base64'),
    'emoji, joined': of('😀👩‍👩‍👧‍👦🏳️‍🌈'),
    'random emoji': any(0x1f300, 700),
    'random Chinese': any(0x4e00, 20_000),
    'random Korean': any(0xac00, 11_000),
    'random Arabic': any(0x627, 30),
    'bidi marks': of('\u202eabc\u202c\u2066x\u2069'),
    'zero-width marks': of('a\u200bb\u200d'),
    'combining marks': of('e\u0301\u0302\u0303'),
    'lone surrogates': any(0xd800, 0x400),
    'special tokens': of('<|endoftext|>'),
    'line ends': of('\n'),
  };
  countTokens('loaded');
  return Object.entries(texts).map(([text, whole]) => {
    const cut = whole.slice(0, CHARACTERS);
    const start = performance.now();
    const tokens = countTokens(cut);
    return { text, characters: cut.length, tokens, ms: performance.now() - start };
  });
}

/** The same numbers in each run. */
function randomNumbers(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32;
  };
}
