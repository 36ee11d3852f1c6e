import { setTimeout as wait } from 'node:timers/promises';
import type { FakeReply, FakeRequest } from '../src/testing/fake-server.ts';
import { hashOf, type Random } from '../test/support/engine-random.ts';
import { AGENT_IDS, LEASE_MS } from './agents.ts';
import type { WorkLog } from './work-log.ts';

/** Of a chat completion, what the rig looks at. */
export interface ChatRequest {
  model: string;
  messages: { role: string; content: string | null; tool_calls?: unknown[] }[];
}

const CHUNKS = 20;
const CHUNK = 8;
const SLOW_CHUNK_MS = 75;
const FAULTS = 0.05;
/** Longer than a lease, and not for ever: the client's own patience is five minutes. */
const HANG_MS = 1.5 * LEASE_MS;
/** Names the message of a client in whatever is said about it. */
const LABEL = /\b(k\d+)-m\d+\b/g;

/**
 * The model: an answer depends on the request alone, so that a request that is sent again gets the same kind of answer.
 * Whether it hangs, is refused or breaks off is chance, and ends with the faults. While it is slow, an answer is text
 * alone and takes long enough to be hit on purpose.
 */
export function createFakeModel(
  random: Random,
  work: WorkLog,
  faultsOn: () => boolean,
  isSlow: () => boolean = () => false,
) {
  return async function answer(request: FakeRequest): Promise<FakeReply> {
    const chat = request.body as ChatRequest;
    // Kept by the server for tests that look at requests; a long run would not fit into memory.
    request.body = { model: chat.model };
    const done = work.begin({
      process: (request.headers['authorization'] ?? '').replace('Bearer ', ''),
      conversation: labelOf(chat)?.conversation ?? '',
      agent: chat.model.replace('model-of-', ''),
    });
    void request.gone.then(done);
    const { text = '' } = plannedReply(chat);
    if (isSlow()) return { text, chunk: CHUNK, delayMs: SLOW_CHUNK_MS };
    const reply = { ...plannedReply(chat), chunk: CHUNK, delayMs: 3 + random() * 7 };
    if (!faultsOn() || random() >= FAULTS) return reply;
    return faulty(reply, random, faultsOn);
  };
}

async function faulty(reply: FakeReply, random: Random, faultsOn: () => boolean): Promise<FakeReply> {
  const kind = Math.floor(random() * 3);
  if (kind === 0) return { error: { code: 'provider_rate_limited', retryAfter: '0' } };
  const after = Math.floor(random() * CHUNKS);
  if (kind === 1) return { ...reply, breaks: { after, how: 'reset' } };
  for (const until = Date.now() + HANG_MS; Date.now() < until && faultsOn();) await wait(100);
  return { ...reply, breaks: { after: 0, how: 'reset' } };
}

/** What this request is answered with: text of 20 chunks, before or without calls. */
export function plannedReply(chat: ChatRequest): FakeReply {
  const from = chat.messages.findLastIndex(isTrigger);
  const trigger = chat.messages[from]?.content ?? '';
  const step = chat.messages.slice(from + 1).filter(({ tool_calls }) => tool_calls?.length).length;
  const label = labelOf(chat)?.label ?? 'nothing';
  const text = `About ${label}, step ${step + 1}: `.padEnd(CHUNKS * CHUNK, 'so it goes on. ');
  const calls = planOf(hashOf(trigger), chat.model, label)[step] ?? [];
  return calls.length > 0 ? { text, calls } : { text };
}

type Calls = { name: string; args: string }[];

/** The calls of each step of a turn, by what set it off. */
function planOf(hash: number, model: string, label: string): Calls[] {
  const tool = (name: string) => ({ name, args: '{}' });
  const [dice, other] = [hash % 100, hash % 7];
  if (dice < 50) return [];
  if (dice < 65) return [[tool('book')]];
  if (dice < 75) return [[tool('book'), tool('look'), tool('book')]];
  if (dice < 82) return [[tool('book')], [tool('book')]];
  if (dice < 90) return [[tool('look')]];
  const others = AGENT_IDS.filter((id) => model !== `model-of-${id}`);
  const args = JSON.stringify({ to: others[other % others.length], goal: `go on with ${label}` });
  return [[{ name: 'handoff', args }]];
}

function isTrigger({ role, content }: ChatRequest['messages'][number]): boolean {
  return role === 'user' && content !== null && content.search(LABEL) >= 0;
}

/** The newest client message that is spoken of. */
function labelOf({ messages }: ChatRequest): { label: string; conversation: string } | null {
  for (const { content } of messages.toReversed()) {
    const [label, conversation] = [...(content ?? '').matchAll(LABEL)].at(-1) ?? [];
    if (label !== undefined && conversation !== undefined) return { label, conversation };
  }
  return null;
}
