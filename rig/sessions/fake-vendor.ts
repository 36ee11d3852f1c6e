import { below, type Random } from '../../sim/random.ts';
import {
  startFakeAnthropic,
  startFakeOpenAiResponses,
  FAKE_USAGE,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { markerOf } from './markers.ts';

export type Cli = 'claude-code' | 'codex';

/** One request to the API behind a program: everything its model saw. */
export interface Seen {
  text: string;
  /** The program compacts: its model is asked for a summary. */
  isCompaction: boolean;
  /** The memory was compacted before. */
  isShortened: boolean;
  /** The last answer of its turn, if it was sent whole. */
  reply: string | null;
}

export interface Vendor extends AsyncDisposable {
  server: FakeServer;
  seen: Seen[];
  figures: { errors: number; cuts: number; calls: number; compactions: number; overflows: number };
  /** From now on no request fails and no window is reported as full. */
  calm(): void;
}

/** Phrases of programs, and of Troupe, in a request for a summary. */
const ASKS_SUMMARY = ['create a detailed summary', 'CONTEXT CHECKPOINT COMPACTION', '<transcript-'];
const SUMMARY = 'SUMMARY-OF-WHAT-WAS';
const ERRORS = ['provider_overloaded', 'provider_failed', 'provider_rate_limited'] as const;
/** Shares of the kinds of answers other than summaries. */
const SHARES = { error: 0.12, cut: 0.08, overflow: 0.03, call: 0.3, full: 0.08 };
/** Makes a program believe that its model's window is full, so that it compacts. */
const FULL_USAGE = { ...FAKE_USAGE, input: 400_000 };
let replies = 0;

/** A model that answers, calls a tool, refuses, breaks off or finds the prompt too long, at random. */
export async function startVendor(cli: Cli, random: Random): Promise<Vendor> {
  const seen: Seen[] = [];
  const figures = { errors: 0, cuts: 0, calls: 0, compactions: 0, overflows: 0 };
  let isCalm = false;

  function answer(request: FakeRequest): FakeReply {
    const text = textsIn(messagesOf(request.body)).join('\n');
    const isCompaction = ASKS_SUMMARY.some((words) => text.includes(words));
    const entry: Seen = { text, isCompaction, isShortened: text.includes(SUMMARY), reply: null };
    seen.push(entry);
    if (isCompaction) {
      figures.compactions += 1;
      return { text: `<analysis>short</analysis><summary>${SUMMARY}</summary>`, chunk: 40 };
    }
    const pace = { chunk: 12, delayMs: random() < 0.3 ? 6 : 0 };
    if (!isCalm && random() < SHARES.error) {
      figures.errors += 1;
      return { error: { code: ERRORS[below(random, ERRORS.length)] ?? 'provider_failed' } };
    }
    if (!isCalm && random() < SHARES.overflow) {
      figures.overflows += 1;
      return { error: { code: 'context_overflow' } };
    }
    const reply = `well, ${markerOf('reply', (replies += 1))} is what I say to that`;
    if (!isCalm && random() < SHARES.cut) {
      figures.cuts += 1;
      return { text: reply, ...pace, breaks: { after: 1 + below(random, 3), how: 'cut' } };
    }
    if (!endsInResult(request.body) && random() < SHARES.call) {
      figures.calls += 1;
      const name = cli === 'claude-code' ? 'mcp__troupe__note' : 'note';
      const calls = Array.from({ length: 1 + below(random, 2) }, (_, at) => ({
        id: `call_${replies}_${at}`,
        name,
        args: JSON.stringify({ slow: random() < 0.3 }),
      }));
      return { text: 'let me note that', calls, ...pace };
    }
    entry.reply = reply;
    return { text: reply, ...pace, ...(!isCalm && random() < SHARES.full && { usage: FULL_USAGE }) };
  }

  const start = cli === 'claude-code' ? startFakeAnthropic : startFakeOpenAiResponses;
  const server = await start(answer);
  return {
    server,
    seen,
    figures,
    calm: () => void (isCalm = true),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

function messagesOf(body: unknown): unknown {
  const { messages, input } = body as { messages?: unknown; input?: unknown };
  return messages ?? input ?? [];
}

/** Every text in the body, at any depth: what a model reads. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function endsInResult(body: unknown): boolean {
  const messages = messagesOf(body);
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : null;
  return JSON.stringify(last ?? '').includes('_result') || JSON.stringify(last ?? '').includes('_output');
}
