import { setTimeout as wait } from 'node:timers/promises';
import type { FakeReply, FakeRequest } from '../packages/testing/src/fake-vendors.ts';
import { hashOf, type Random } from '../test/support/engine-random.ts';
import { AGENT_IDS, LEASE_MS } from './agents.ts';
import type { WorkLog } from './work-log.ts';

/** The part of a chat completion that the rig reads. */
export interface ChatRequest {
  model: string;
  messages: { role: string; content: string | null; tool_calls?: unknown[] }[];
}

const CHUNKS = 20;
const CHUNK = 8;
const SLOW_CHUNK_MS = 75;
const FAULTS = 0.05;
/** Longer than a lease, but finite: the client itself waits for five minutes. */
const HANG_MS = 1.5 * LEASE_MS;
/** The label of a client's message, in any text about it. */
const LABEL = /\b(k\d+)-m\d+\b/g;

/**
 * The model. An answer depends on the request alone, so a repeated request gets the same kind of answer. Hanging,
 * refusing and breaking off are random, and end with the faults. While the model is slow, answers are text only and
 * take long enough to be hit on purpose.
 */
export function createFakeModel(
  random: Random,
  work: WorkLog,
  faultsOn: () => boolean,
  isSlow: () => boolean = () => false,
) {
  return async function answer(request: FakeRequest): Promise<FakeReply> {
    const chat = request.body as ChatRequest;
    // The server keeps requests for tests that look at them; those of a long run would not fit into memory.
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

/** The answer to a request: text of 20 chunks, before or without calls. */
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

/** The calls of each step of a turn, by its trigger. */
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

/** The newest client message mentioned in the request. */
function labelOf({ messages }: ChatRequest): { label: string; conversation: string } | null {
  for (const { content } of messages.toReversed()) {
    const [label, conversation] = [...(content ?? '').matchAll(LABEL)].at(-1) ?? [];
    if (label !== undefined && conversation !== undefined) return { label, conversation };
  }
  return null;
}
