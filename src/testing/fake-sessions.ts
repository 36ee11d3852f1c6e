import type { PromptMessage } from '../events/index.ts';
import {
  type ModelEvent,
  type ModelRequest,
  type Provider,
  type SessionChange,
  type SessionMark,
  STATELESS,
} from '../providers/provider.ts';

/** What a session-stateful program keeps on disk: it outlives the process that wrote it. */
export interface SessionMemory {
  sessions: Map<string, SessionTurn[]>;
  /** Every model call, with all that the model saw of its session. */
  seen: SeenCall[];
}

interface SessionTurn {
  id: string;
  /** What was put in and what the model said, in order. */
  texts: string[];
}

export interface SeenCall {
  session: string;
  trace: ModelRequest['trace'];
  change: SessionChange | 'continued';
  /** Sent with this request. */
  sent: readonly PromptMessage[];
  /** What the model sees of the session by then, this request included. */
  transcript: readonly string[];
}

export interface FakeSessionsOptions {
  memory: SessionMemory;
  answer: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;
  /** Default true. */
  rewind?: boolean;
  /** Default `fake`. */
  home?: string;
  /** Default `scripted`. */
  name?: string;
  /** A killed process writes nothing more. */
  isAlive?: () => boolean;
}

export function newSessionMemory(): SessionMemory {
  return { sessions: new Map(), seen: [] };
}

let minted = 0;

/**
 * A session-stateful provider without a model, and as careless as the real ones: whatever it is sent it keeps, also of
 * turns that broke off; two turns at once in a session are the caller's mistake.
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
    if (asked?.kind === 'continue') return waiting ? { ...waiting, change: 'continued' } : 'no turn is open';
    const turn: SessionTurn = { id: `t${(minted += 1)}`, texts: [] };
    if (asked?.kind !== 'resume') {
      const session = `s${minted}`;
      memory.sessions.set(session, [turn]);
      return { session, change: 'started', turn };
    }
    const turns = memory.sessions.get(asked.mark.id);
    const at = turns?.findIndex(({ id }) => id === asked.mark.checkpoint) ?? -1;
    if (!turns || at < 0) return `there is no session ${asked.mark.id}`;
    const isBeyond = at < turns.length - 1;
    if (isBeyond && rewind) turns.splice(at + 1);
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
    let said = '';
    for await (const event of answer(request, signal)) {
      if (event.type === 'start') continue;
      if (event.type === 'text' && isAlive()) {
        if (said !== '') turn.texts.pop();
        turn.texts.push((said += event.delta));
      }
      if (event.type === 'call') write(`calls ${event.call.name}`);
      if (event.type !== 'done') yield event;
      else if (event.stop === 'calls') {
        open.set(request.cacheKey, { session, turn });
        yield event;
      } else yield { ...event, session: { id: session, checkpoint: turn.id } satisfies SessionMark };
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

function textOf(message: PromptMessage): string {
  if (message.role !== 'assistant') return message.content;
  const calls = (message.calls ?? []).map(({ name }) => `[called ${name}]`);
  return [message.content, ...calls].join('\n');
}
