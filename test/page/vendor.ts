import type { Usage } from '../../src/events/index.ts';
import {
  startFakeOpenAi,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import type { StoryClock } from './story-clock.ts';

/** A scripted answer. A model uses the first line of its agent that matches the last input and is not used up. */
export interface Line {
  agent: string;
  hears: string | RegExp;
  says: FakeReply | ((request: FakeRequest) => FakeReply | Promise<FakeReply>);
  /** Number of uses. Default: unlimited. */
  times?: number;
}

interface WireMessage {
  role: string;
  content: unknown;
}

const THINKING_MS = 1_400;
const CHARS_PER_TOKEN = 3.5;
/** Caches of vendors work in blocks of this many tokens. */
const CACHE_BLOCK = 128;
/** Text that only the request for a summary has. */
const SUMMARY_REQUEST = /<transcript-/;
/** Length after which a hanging model stops. */
const HANGS_AFTER_CHUNKS = 12;

export interface Vendor extends FakeServer {
  /** Models whose quota is used up. They refuse every request. */
  spent: Set<string>;
}

/** A scripted vendor that counts and caches tokens like real ones. */
export async function startVendor(lines: readonly Line[], clock: StoryClock): Promise<Vendor> {
  const spent = new Set<string>();
  const used = new Map<Line, number>();
  const sent = new Map<string, string>();
  const server = await startFakeOpenAi(async (request) => {
    const { model, messages, tools } = request.body as {
      model: string;
      messages: WireMessage[];
      tools?: unknown;
    };
    const heard = textOf(messages.findLast(({ role }) => role === 'user' || role === 'tool'));
    const whole = JSON.stringify([tools ?? [], ...messages]);
    const usage = (text: string) => usageOf(whole, sent.get(model) ?? '', text);
    const isSummary = SUMMARY_REQUEST.test(heard);
    const line = lines.find(
      (each) =>
        each.agent === model && fits(each.hears, heard) && (used.get(each) ?? 0) < (each.times ?? Infinity),
    );
    if (line) used.set(line, (used.get(line) ?? 0) + 1);
    clock.pass(THINKING_MS);
    if (spent.has(model))
      return { error: { code: 'provider_quota', message: 'You exceeded your current quota' } };
    const reply = isSummary ? { text: SUMMARY } : await replyOf(line, request, heard);
    const counted = { usage: usage(`${reply.text ?? ''}${JSON.stringify(reply.calls ?? '')}`), ...reply };
    if (!isSummary) sent.set(model, whole);
    return counted;
  });
  return Object.assign(server, { spent });
}

async function replyOf(line: Line | undefined, request: FakeRequest, heard: string): Promise<FakeReply> {
  if (!line)
    return {
      text: `Noted: ${
        heard
          .split(/\n\n\[(?:reminder|[\d :-]+) #\d{6}\]/)[0]
          ?.trim()
          .slice(-60) ?? ''
      }`,
    };
  return typeof line.says === 'function' ? line.says(request) : line.says;
}

/** Streams the beginning of a text and then hangs until the turn is aborted. */
export function hanging(text: string): FakeReply {
  return { text, chunk: 12, breaks: { after: HANGS_AFTER_CHUNKS, how: 'hang' } };
}

function fits(pattern: string | RegExp, heard: string): boolean {
  return typeof pattern === 'string' ? heard.includes(pattern) : pattern.test(heard);
}

function textOf(message: WireMessage | undefined): string {
  const content = message?.content ?? '';
  return typeof content === 'string' ? content : JSON.stringify(content);
}

function usageOf(whole: string, before: string, said: string): Usage {
  const input = tokensOf(whole.length);
  let same = 0;
  while (same < whole.length && whole[same] === before[same]) same += 1;
  const cacheRead = Math.floor(tokensOf(same) / CACHE_BLOCK) * CACHE_BLOCK;
  return { input, output: tokensOf(said.length), cacheRead, cacheWrite: 0, reasoning: 0 };
}

function tokensOf(characters: number): number {
  return Math.ceil(characters / CHARS_PER_TOKEN);
}

const SUMMARY = `## Goal
Ana wants the harbour archive indexed, and @archivist indexes it.
## Decisions
- Ledgers before 1900 come first, as Ana said.
- Damaged pages are listed, not guessed.
## Next steps
@archivist goes on with the ledgers of 1891.`;
