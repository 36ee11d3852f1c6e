import {
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  STATELESS,
} from '../../src/providers/provider.ts';
import { NO_USAGE } from '../../src/events/index.ts';

/** A model with scripted answers that records its requests. */
export interface TestModel extends Provider {
  requests: ModelRequest[];
}

export type Answer = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;

export function modelOf(answer: Answer): TestModel {
  const requests: ModelRequest[] = [];
  return {
    name: 'scripted',
    capabilities: { ...STATELESS, interleavedSystem: true, caching: 'none', reportsUsage: false },
    requests,
    stream(request, { signal }) {
      requests.push(request);
      return legal(answer(request, signal), signal);
    },
  };
}

/** Ends with `aborted` when the signal aborts, as the port requires of every provider. */
async function* legal(events: AsyncIterable<ModelEvent>, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  const gone = new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null)));
  const source = events[Symbol.asyncIterator]();
  for (;;) {
    const next = signal.aborted ? null : await Promise.race([source.next(), gone]);
    if (!next || signal.aborted) return void (yield { type: 'aborted' });
    if (next.done) return;
    yield next.value;
  }
}

/** Answers with one list of events per call, and repeats the last list. */
export function inOrder(...answers: ModelEvent[][]): TestModel {
  let call = 0;
  return modelOf(async function* () {
    yield* answers[Math.min(call++, answers.length - 1)] ?? [];
  });
}

/** Answers each step of every turn with the list of that step, and repeats the last list. */
export function byStep(...answers: ModelEvent[][]): TestModel {
  return modelOf(async function* ({ trace }) {
    yield* answers[Math.min(trace.step, answers.length) - 1] ?? [];
  });
}

export function says(...chunks: string[]): ModelEvent[] {
  const text = chunks.map((delta) => ({ type: 'text', delta }) as const);
  return [{ type: 'start' }, ...text, { type: 'done', stop: 'end', usage: NO_USAGE }];
}

let minted = 0;

/** The calls of one step: `[name, args]`. String args are sent as written. */
export function asks(...calls: [name: string, args: unknown][]): ModelEvent[] {
  return [
    { type: 'start' },
    { type: 'text', delta: 'let me see' },
    ...calls.map(([name, args]) => ({
      type: 'call' as const,
      call: {
        id: `call-${(minted += 1)}`,
        name,
        args: typeof args === 'string' ? args : JSON.stringify(args),
      },
    })),
    { type: 'done', stop: 'calls', usage: NO_USAGE },
  ];
}

export function breaks(code: ModelFailure['code'], ...said: string[]): ModelEvent[] {
  const text = said.map((delta) => ({ type: 'text', delta }) as const);
  return [{ type: 'start' }, ...text, { type: 'failed', error: { code, message: `scripted ${code}` } }];
}

export interface Gated extends TestModel {
  /** Resolves when the model has reached the event that it holds back. */
  reached(): Promise<void>;
  /** Lets everything through from now on. */
  open(): void;
}

/** A model that holds back event `stop` of its first call until it is opened. */
export function gated(events: ModelEvent[], stop: number): Gated {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const model = modelOf(async function* () {
    const first = model.requests.length === 1;
    for (const [index, event] of events.entries()) {
      if (first && index === stop) {
        reached.resolve();
        await opened.promise;
      }
      yield event;
    }
  });
  return Object.assign(model, { reached: () => reached.promise, open: () => opened.resolve() });
}

/**
 * The sent part of a request: everything except the seqs, which are filled in when an agent's own words reach the
 * log.
 */
export function bytes(request: ModelRequest | undefined): string {
  const { messages = [], tools, breakpoints, model } = request ?? {};
  return JSON.stringify({
    messages: messages.map((message) => ({ ...message, seqs: undefined })),
    tools,
    breakpoints,
    model,
  });
}

/** The text of a whole request, in order. */
export function shown(request: ModelRequest | undefined): string {
  return (request?.messages ?? []).map(({ content }) => content).join('\n');
}

export function times(text: string, part: string): number {
  return text.split(part).length - 1;
}
