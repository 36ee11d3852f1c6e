import {
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  type ReplyLimitSettings,
  type ConversationId,
  NO_USAGE,
  type PromptMessage,
  turnId,
  type Usage,
} from './troupe.ts';
import type { FakeReply } from './fake-server.ts';
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';

/** A provider whose answers follow the scene. */
export interface ProviderFixture extends AsyncDisposable {
  /** The provider under test. */
  provider: Provider;
  /** Name of the model. */
  model?: string;
  /** Number of requests the vendor has received; absent without a vendor. */
  requests?: () => number;
  /** Resolves when the vendor has received the first request. */
  arrived?(): Promise<{ gone: Promise<void> }>;
  /** The adapter reaches the vendor through a program, which may change answers. */
  isProgram?: true;
}

/** `unreachable` is a vendor that does not listen. */
export type ProviderScene = FakeReply | 'unreachable';

/** Null if the scene does not apply to the adapter: its cases then pass unrun. */
export type MakeProvider = (
  scene: ProviderScene,
  replyLimits: ReplyLimitSettings,
) => Promise<ProviderFixture | null>;

export type AddCase = (
  group: string,
  name: string,
  scene: ProviderScene,
  run: (fixture: ProviderFixture, request: ModelRequest) => Promise<void>,
) => void;
/** Adds cases for a provider with these reply limits. */
export type AddWithin = (limits: ReplyLimitSettings) => AddCase;

const ADDRESS = { tenant: 'default', conversation: 'conf' as ConversationId, agent: 'ana' } as const;

/** A small valid request; tests override its fields. */
export function sampleRequest(over: Partial<ModelRequest> = {}): ModelRequest {
  const messages: PromptMessage[] = [
    { role: 'system', content: 'You are Ana.', seqs: [] },
    { role: 'user', content: 'Hello', seqs: [1] },
  ];
  const trace = { ...ADDRESS, turn: turnId(ADDRESS as Parameters<typeof turnId>[0], 1), step: 1, call: 1 };
  return {
    model: 'm',
    messages,
    tools: [],
    breakpoints: [],
    maxOutputTokens: 100,
    cacheKey: 'default/conf/ana',
    ...over,
    trace: over.trace ?? trace,
  };
}

/** All events of one call, checked for legal order; `onEvent` receives each as it arrives. */
export async function collectEvents(
  provider: Provider,
  request: ModelRequest = sampleRequest(),
  { signal = new AbortController().signal, onEvent }: CollectOptions = {},
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of provider.stream(request, { signal })) {
    events.push(event);
    onEvent?.(event);
  }
  assertLegal(events);
  return events;
}

/** Options of `collectEvents`. */
export interface CollectOptions {
  /** Aborts it. */
  signal?: AbortSignal;
  /** Called with each event. */
  onEvent?: (event: ModelEvent) => void;
}

const LEGAL_ORDER =
  /^start( session)?( (begun|text|thinking|reasoning|calling|call|compacted))* (done|failed|aborted)$/;

function assertLegal(events: readonly ModelEvent[]): void {
  const order = events.map(({ type }) => type).join(' ');
  assert.match(order, LEGAL_ORDER);
  assertPieces(events);
}

/** What was said in pieces is what is given whole. */
function assertPieces(events: readonly ModelEvent[]): void {
  const written = new Map<string, { name: string; args: string }>();
  for (const event of events) {
    if (event.type === 'calling') {
      const { id, name, delta } = event;
      written.set(id, { name, args: (written.get(id)?.args ?? '') + delta });
    }
    if (event.type !== 'call' || !written.has(event.call.id)) continue;
    const { id, name, args } = event.call;
    const told = written.get(id);
    assert.equal(told?.name, name, `the pieces of the call ${id} name another tool`);
    // Some vendors send no arguments at all for none.
    assert.equal(told?.args || '{}', args || '{}', `the pieces of the call ${id} are not its arguments`);
  }
}

/** The types of the events without pieces, which a provider may leave out. */
export function wholeTypesOf(events: readonly ModelEvent[]): string[] {
  return events.map(({ type }) => type).filter((type) => type !== 'thinking' && type !== 'calling');
}

export function endOf(events: readonly ModelEvent[]): Extract<ModelEvent, { type: 'done' }> {
  const last = events.at(-1);
  assert.ok(last?.type === 'done', `ended in ${JSON.stringify(last)?.slice(0, 200)}`);
  return last;
}

export function failureOf(events: readonly ModelEvent[]): ModelFailure {
  const last = events.at(-1);
  assert.ok(last?.type === 'failed', `ended in ${JSON.stringify(last)?.slice(0, 200)}`);
  return last.error;
}

/** The words of a stream of events. */
export function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.delta : '')).join('');
}

const SSE = { 'content-type': 'text/event-stream' };
const LONG = 'ü word '.repeat(1_000);

/** Cases about endless or false data of a broken or hostile vendor. Each has a limit, which the error names. */
export function addExcess(within: AddWithin): void {
  const add = within({});
  const tooLong = (name: string, scene: FakeReply, limits: ReplyLimitSettings) =>
    within(limits)('excess', `${name} ends the answer`, scene, async ({ provider }, request) => {
      const events = await collectEvents(provider, request);
      const { code, message } = failureOf(events);
      assert.equal(code, 'provider_reply_too_long', message);
      assert.ok(message.includes(Object.keys(limits)[0] ?? ''), message);
      assert.ok(scene.text === undefined || scene.text.startsWith(textOf(events)));
    });

  tooLong('endless text', { text: LONG, chunk: 50 }, { textBytes: 2_048 });
  const args = JSON.stringify({ a: LONG });
  tooLong('an endless call', { calls: [{ name: 'add', args }], chunk: 200 }, { argumentBytes: 2_048 });
  const calls = Array.from({ length: 6 }, (_, index) => ({ name: `add${index}`, args: '{}' }));
  tooLong('one call too many', { calls }, { calls: 5 });
  tooLong('an answer that takes too long', { text: LONG, chunk: 1, delayMs: 5 }, { totalMs: 150 });

  const raw = (body: string | Uint8Array, headers: Record<string, string> = SSE): FakeReply => ({
    raw: { status: 200, headers, body },
  });
  const line = `data: "${'x'.repeat(100_000)}`;
  tooLong('an endless line', raw(line), { eventBytes: 16_384 });
  tooLong('an endless event', raw(`${'data: 1\n'.repeat(20_000)}`), { eventBytes: 16_384 });
  tooLong('a stream without events', raw(': no\n\n'.repeat(50_000)), { receivedBytes: 65_536 });
  const bomb = gzipSync(': no\n\n'.repeat(500_000));
  tooLong('a decompression bomb', raw(bomb, { ...SSE, 'content-encoding': 'gzip' }), {
    receivedBytes: 65_536,
  });

  add(
    'excess',
    'the message of a huge error body is its beginning',
    { raw: { status: 500, headers: {}, body: `it burns ${'!'.repeat(3_000_000)}` } },
    async ({ provider }, request) => {
      const { code, message } = failureOf(await collectEvents(provider, request));
      assert.equal(code, 'provider_failed');
      assert.match(message, /it burns/);
      assert.ok(message.length < 4_000);
    },
  );

  addFalseUsage(add);
  addRedirects(add);
}

const FALSE_USAGE: Readonly<Record<string, Partial<Record<keyof Usage, unknown>>>> = {
  'too much input': { input: 9e15, output: 1 },
  'too much output': { input: 10, output: 9e15 },
  'too much cache': { input: 10, cacheRead: 1e18 },
  'negative tokens': { input: -5_000, output: -1 },
  'half tokens': { input: 10.5 },
};

function addFalseUsage(add: AddCase): void {
  for (const [name, reported] of Object.entries(FALSE_USAGE)) {
    const usage = { ...NO_USAGE, ...reported } as Usage;
    add('excess', `a usage with ${name} is ignored`, { text: 'x', usage }, async (fixture, request) => {
      const last: ModelEvent | undefined = (await collectEvents(fixture.provider, request)).at(-1);
      // A program between adapter and vendor may fail on such a usage.
      if (last?.type === 'failed' && fixture.isProgram) return;
      assert.ok(last?.type === 'done', `ended in ${JSON.stringify(last)}`);
      if (fixture.isProgram && last.doubt === undefined) return assertSmall(last.usage);
      assert.deepEqual(last.usage, NO_USAGE);
      assert.ok(last.doubt, 'the false usage is not reported');
    });
  }
}

/** Checks the usage as changed by a program. */
function assertSmall(usage: Usage): void {
  for (const count of Object.values(usage))
    assert.ok(Number.isSafeInteger(count) && count >= 0 && count <= 100_000_000, JSON.stringify(usage));
}

/** An address without a server. */
const ELSEWHERE = 'http://127.0.0.1:9';

function addRedirects(add: AddCase): void {
  for (const status of [301, 302, 303, 307, 308]) {
    add(
      'redirects',
      `${status} to another origin is refused, with both addresses`,
      { raw: { status, headers: { location: `${ELSEWHERE}/v1/stolen?q=1` }, body: '' } },
      async ({ provider, requests }, request) => {
        const { code, message } = failureOf(await collectEvents(provider, request));
        assert.equal(code, 'provider_redirected', message);
        assert.ok(message.includes(ELSEWHERE), message);
        assert.ok(!message.includes('stolen'), message);
        assert.equal(requests?.() ?? 1, 1);
      },
    );
  }
}
