import {
  type PromptMessage,
  type ModelEvent,
  type ModelRequest,
  type Provider,
  type SessionChange,
  type SessionMark,
  STATELESS,
} from './troupe.ts';
import assert from 'node:assert/strict';
import { collectEvents, type CollectOptions, endOf, sampleRequest } from './provider-conformance.ts';
import type { FakeReply } from './fake-vendors.ts';

/** The sessions that a program stores on disk. They outlive the process that wrote them. */
export interface SessionMemory {
  /** By id. */
  sessions: Map<string, SessionTurn[]>;
  /** Every model call, with the whole session that the model saw. */
  seen: SeenCall[];
}

interface SessionTurn {
  /** Its id. */
  id: string;
  /** Inputs and answers, in order. */
  texts: string[];
  /** Number of texts before an answer whose calls have no results. A resumed session leaves that answer out. */
  answered?: number;
}

/** A call that a fake got. */
export interface SeenCall {
  /** The session. */
  session: string;
  /** Which call it was. */
  trace: ModelRequest['trace'];
  /** What happened to the session. */
  change: SessionChange | 'continued';
  /** The texts sent with this request. */
  sent: readonly PromptMessage[];
  /** The session as the model sees it, including this request. */
  transcript: readonly string[];
}

/** Options of `createFakeSessions`. */
export interface FakeSessionsOptions {
  /** The sessions that the program has stored. */
  memory: SessionMemory;
  /** The answer to a request. */
  answer: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;
  /** Default true. */
  rewind?: boolean;
  /** Default `fake`. */
  home?: string;
  /** Default `scripted`. */
  name?: string;
  /** Once it returns false, the process writes nothing more, like a killed one. Default: always true. */
  isAlive?: () => boolean;
}

/** An empty memory for `createFakeSessions`. */
export function newSessionMemory(): SessionMemory {
  return { sessions: new Map(), seen: [] };
}

let minted = 0;

/**
 * A provider with sessions and without a model. Like real ones it stores everything that it is sent, even from
 * interrupted turns. Concurrent turns in one session are an error of the caller.
 */
export function createFakeSessions(options: FakeSessionsOptions): Provider {
  const { memory, answer, rewind = true, home = 'fake', name = 'scripted', isAlive = () => true } = options;
  const open = new Map<string, { session: string; turn: SessionTurn }>();

  function place(
    request: ModelRequest,
  ): { session: string; change: SeenCall['change']; turn: SessionTurn } | string {
    const { session: asked, cacheKey } = request;
    const waiting = open.get(cacheKey);
    open.delete(cacheKey);
    if (asked?.kind === 'continue') {
      delete waiting?.turn.answered;
      return waiting ? { ...waiting, change: 'continued' } : 'no turn is open';
    }
    const turn: SessionTurn = { id: `t${(minted += 1)}`, texts: [] };
    if (asked?.kind !== 'resume') {
      const session = `s${minted}`;
      memory.sessions.set(session, [turn]);
      return { session, change: 'started', turn };
    }
    const turns = memory.sessions.get(asked.mark.id);
    const { checkpoint } = asked.mark;
    const at = turns?.findLastIndex(({ id }) => checkpoint === '' || id === checkpoint) ?? -1;
    if (!turns || at < 0) return `there is no session ${asked.mark.id}`;
    const isBeyond = at < turns.length - 1;
    if (isBeyond && rewind) turns.splice(at + 1);
    leaveOutUnanswered(turns.at(-1));
    turns.push(turn);
    return { session: asked.mark.id, change: isBeyond && rewind ? 'rewound' : 'resumed', turn };
  }

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    yield { type: 'start' };
    if (signal.aborted) return void (yield { type: 'aborted' });
    const placed = place(request);
    if (typeof placed === 'string') {
      const error = { code: 'provider_session_lost', message: placed } as const;
      return void (yield { type: 'failed', error });
    }
    const { session, change, turn } = placed;
    const write = (text: string) => isAlive() && turn.texts.push(text);
    for (const message of request.messages) write(textOf(message));
    const transcript = (memory.sessions.get(session) ?? []).flatMap(({ texts }) => texts);
    if (isAlive())
      memory.seen.push({ session, trace: request.trace, change, sent: request.messages, transcript });
    if (change !== 'continued') yield { type: 'session', change, id: session };
    const before = turn.texts.length;
    let text = '';
    for await (const event of answer(request, signal)) {
      if (event.type === 'start') continue;
      if (event.type === 'text' && isAlive()) {
        if (text !== '') turn.texts.pop();
        turn.texts.push((text += event.delta));
      }
      if (event.type === 'call') write(`calls ${event.call.name}`);
      if (event.type !== 'done') yield event;
      else {
        if (event.stop === 'calls') {
          open.set(request.cacheKey, { session, turn });
          turn.answered = before;
        }
        yield { ...event, session: { id: session, checkpoint: turn.id } satisfies SessionMark };
      }
    }
  }

  return {
    name,
    home,
    capabilities: { ...STATELESS, sessionResumption: true, rewind, reportsUsage: false },
    stream: (request, { signal }) => (request.session ? stream(request, signal) : answer(request, signal)),
    leave: (cacheKey) => void open.delete(cacheKey),
  };
}

function leaveOutUnanswered(turn: SessionTurn | undefined): void {
  turn?.texts.splice(turn.answered ?? turn.texts.length);
}

function textOf(message: PromptMessage): string {
  if (message.role !== 'assistant') return message.content;
  const calls = (message.calls ?? []).map(({ name }) => `[called ${name}]`);
  return [message.content, ...calls].join('\n');
}

/** A provider with sessions whose vendor answers with `next`, once per model call. */
export interface SessionFixture extends AsyncDisposable {
  /** The provider under test. */
  provider: Provider;
  /** Name of the model. */
  model?: string;
  /** Closes the provider and opens another one with the same home, like a restart of the process. */
  reopen(): Promise<Provider>;
  /** All text of the vendor's last model call, in order: instructions, messages, calls and results. */
  transcript(): string;
  /** Number of model calls the vendor has received. */
  requests(): number;
  /** Resolves when model call `number` (from 1) has arrived. */
  arrived(number: number): Promise<unknown>;
  /** Kills the program that holds the sessions, and resolves when it has ended; absent without a program. */
  kill?(): Promise<void>;
}

const SYSTEM = 'You are Ana, mark-persona.';
const TOOLS = ['add', 'list'].map((name) => ({
  name,
  description: `The tool ${name}.`,
  parameters: { type: 'object', properties: { a: { type: 'number' } } },
}));
const LONG = 'A long answer which is broken off. mark-partial '.repeat(8);
/** An answer that stops after three pieces and never continues. */
export const HANGING: FakeReply = { text: LONG, chunk: 4, breaks: { after: 3, how: 'hang' } };

/** A conversation of one agent with a vendor, through the port. */
export class Talk {
  readonly fixture: SessionFixture;
  readonly replies: FakeReply[];
  readonly #model: { model?: string };
  provider: Provider;
  mark: SessionMark | undefined;
  /** The mark of the last answer, if it made calls. */
  atCalls: SessionMark | undefined;

  constructor(fixture: SessionFixture, replies: FakeReply[]) {
    this.fixture = fixture;
    this.replies = replies;
    this.provider = fixture.provider;
    this.#model = fixture.model === undefined ? {} : { model: fixture.model };
  }

  request(over: Partial<ModelRequest>): ModelRequest {
    return sampleRequest({ tools: TOOLS, ...this.#model, ...over });
  }

  /** Starts a session and keeps its mark, if there is one. */
  start(text: string, over: Partial<ModelRequest> = {}, options: CollectOptions = {}): Promise<ModelEvent[]> {
    return this.#send({ messages: [system(), user(text)], session: { kind: 'start' }, ...over }, options);
  }

  /** One more turn after the last mark. */
  resume(
    text: string,
    over: Partial<ModelRequest> = {},
    options: CollectOptions = {},
  ): Promise<ModelEvent[]> {
    assert.ok(this.mark, 'no turn has ended yet');
    const session = { kind: 'resume', mark: this.mark } as const;
    return this.#send({ messages: [user(text)], session, ...over }, options);
  }

  /** Returns results for all calls of `events` and of the following answers, until the model makes no more calls. */
  async goOn(
    events: readonly ModelEvent[],
    result = (name: string) => `result-of-${name}`,
  ): Promise<ModelEvent[]> {
    const all: ModelEvent[] = [...events];
    for (let last = all; endOf(last).stop === 'calls';) {
      const messages = callsOf(last).map(({ id, name }) => toolResult(id, name, result(name)));
      assert.notEqual(messages.length, 0, 'it stopped for calls and made none');
      last = await this.#send({ messages, session: { kind: 'continue' } }, {});
      all.push(...last);
    }
    return all;
  }

  async #send(over: Partial<ModelRequest>, options: CollectOptions): Promise<ModelEvent[]> {
    const events = await collectEvents(this.provider, this.request(over), options);
    const last = events.at(-1);
    if (last?.type !== 'done') return events;
    this.atCalls = last.stop === 'calls' ? last.session : undefined;
    if (last.stop !== 'calls') this.mark = last.session ?? this.mark;
    return events;
  }

  /** Aborts after the first text. */
  async interrupt(run: (options: CollectOptions) => Promise<ModelEvent[]>): Promise<void> {
    const controller = new AbortController();
    const onEvent = ({ type }: ModelEvent) => type === 'text' && controller.abort();
    const events = await run({ signal: controller.signal, onEvent });
    assert.equal(events.at(-1)?.type, 'aborted', JSON.stringify(events.at(-1)));
  }

  /** Asserts that the vendor's last request holds each text exactly once, in this order. */
  assertSent(...markers: string[]): void {
    const sent = this.fixture.transcript();
    const counts = markers.map((marker) => sent.split(marker).length - 1);
    assert.deepEqual(
      Object.fromEntries(markers.map((marker, i) => [marker, counts[i]])),
      Object.fromEntries(markers.map((marker) => [marker, 1])),
      sent,
    );
    const places = markers.map((marker) => sent.indexOf(marker));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
      `out of order: ${sent}`,
    );
  }

  assertNotSent(...markers: string[]): void {
    const sent = this.fixture.transcript();
    for (const marker of markers) assert.ok(!sent.includes(marker), `${marker} was sent: ${sent}`);
  }
}

type Run = (talk: Talk) => Promise<void>;
export type AddTalk = (group: string, name: string, replies: FakeReply[], run: Run) => void;

export function system(): PromptMessage {
  return { role: 'system', content: SYSTEM, seqs: [] };
}

export function user(content: string): PromptMessage {
  return { role: 'user', content, seqs: [1] };
}

export function toolResult(call: string, name: string, content: string) {
  return { role: 'tool' as const, call, name, content, failed: false, seqs: [] };
}

export function callsOf(events: readonly ModelEvent[]) {
  return events.flatMap((event) => (event.type === 'call' ? [event.call] : []));
}

export function changeOf(events: readonly ModelEvent[]): string | undefined {
  return events.find((event) => event.type === 'session')?.change;
}

export function idOf(events: readonly ModelEvent[]): string | undefined {
  return events.find((event) => event.type === 'session')?.id;
}
