import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { guardStream, type StreamWatch } from '../guard-stream.ts';
import {
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  STATELESS,
} from '../provider.ts';
import { type ReplyLimitSettings, replyLimits } from '../reply-limits.ts';
import { type AgentSdk, loadAgentSdk } from './agent-sdk.ts';
import { type ClaudeCodeSettings, configDir } from './launch.ts';
import { createProcesses } from './processes.ts';
import { promptBlocks } from './prompt-blocks.ts';
import { readTurn } from './read-turn.ts';
import { createSessions, launchOf, type OpenTurn, type TurnEnd } from './sessions.ts';

export interface ClaudeCodeOptions extends ClaudeCodeSettings {
  clock?: Clock;
  /** A session that nobody uses for so long gives up its process. Default 300,000 ms. */
  idleMs?: number;
  /** Beyond so many, the process that was idle longest is closed. One takes some 200 MB. Default 8. */
  maxProcesses?: number;
  /** How long the program may take to be ready. */
  startTimeoutMs?: number;
  /** How much is taken of an answer, and for how long; it says every 30 s that a tool of its own is running. */
  replyLimits?: ReplyLimitSettings;
}

const NAME = 'claude-code';
const IDLE_MS = 300_000;
const MAX_PROCESSES = 8;
const START_TIMEOUT_MS = 30_000;

/**
 * Claude Code as a provider that remembers: for each cache key one session, held by a process that stays open between
 * turns. It is sent only what it has not seen, and is taken back to its mark where a turn broke off.
 */
export function createClaudeCode(options: ClaudeCodeOptions): Provider {
  const { clock = systemClock, idleMs = IDLE_MS, maxProcesses = MAX_PROCESSES } = options;
  const { startTimeoutMs = START_TIMEOUT_MS } = options;
  const limits = replyLimits(options.replyLimits);
  const secrets = options.apiKey === undefined ? [] : [options.apiKey];
  let sdk: AgentSdk | undefined;
  const loadSdk = async () => (sdk ??= await loadAgentSdk());
  const processes = createProcesses({ loadSdk, settings: options, startTimeoutMs, limits });
  const sessions = createSessions({ processes, home: options.home, clock, idleMs, maxProcesses });

  /** Ends the process when the reader leaves; lets go of the seat before the last event, as the reader may stop there. */
  async function* readInSeat(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const seat = sessions.seat(request.cacheKey);
    const before = seat.free;
    const mine = Promise.withResolvers<void>();
    seat.free = mine.promise;
    let isOver = false;
    const end = (how: TurnEnd) => {
      if (!isOver) sessions.settle(seat, how);
      isOver = true;
      mine.resolve();
    };
    try {
      await before;
      if (watch.signal.aborted) {
        // Nothing was sent.
        isOver = true;
        return;
      }
      const turn = await sessions.begin(seat, request);
      if ('code' in turn) {
        end({ kind: 'broken' });
        return yield { type: 'failed', error: turn };
      }
      for await (const event of read(request, watch, turn)) {
        if (isLast(event)) end(endOf(event));
        yield event;
      }
    } finally {
      end({ kind: 'broken' });
    }
  }

  /** Beside all sessions, without a trace. */
  async function* readOnce(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const { system, blocks } = promptBlocks(request);
    const process = await processes.start(launchOf(request, system), { kind: 'none' }, request.cacheKey);
    try {
      process.send(blocks);
      yield* read(request, watch, { process, change: null });
    } finally {
      void process.stop();
    }
  }

  async function* read(
    request: ModelRequest,
    watch: StreamWatch,
    turn: OpenTurn,
  ): AsyncGenerator<ModelEvent> {
    const { signal } = watch;
    const stop = () => void turn.process.stop();
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    const version = sdk?.version ?? '';
    try {
      for await (const event of readTurn({ ...turn, request, provider: NAME, version, secrets, watch })) {
        // Whoever has the last event aborts what is left of a request.
        if (isLast(event)) signal.removeEventListener('abort', stop);
        yield event;
      }
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async function* readAny(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    try {
      yield* request.session ? readInSeat(request, watch) : readOnce(request, watch);
    } catch (thrown) {
      if (!(thrown instanceof TroupeError) || !isOurs(thrown.code)) throw thrown;
      yield { type: 'failed', error: { code: thrown.code, message: thrown.message } };
    }
  }

  return {
    name: NAME,
    capabilities: { ...STATELESS, sessionResumption: true, rewind: true, fork: true, images: true },
    home: `${hostname()}:${configDir(options)}:${options.cwd ?? join(options.home, 'work')}`,
    stream: (request, { signal }) =>
      guardStream({
        request,
        signal,
        limits,
        remembers: true,
        read: (watch) => readAny(request, watch),
        secrets,
      }),
    leave: (cacheKey) => sessions.leave(cacheKey),
    close: () => processes.close(),
  };
}

function isLast({ type }: ModelEvent): boolean {
  return type === 'done' || type === 'failed';
}

function endOf(event: ModelEvent): TurnEnd {
  if (event.type !== 'done') return { kind: 'broken' };
  if (event.stop === 'calls') return { kind: 'waits' };
  return event.session ? { kind: 'done', mark: event.session } : { kind: 'broken' };
}

function isOurs(code: TroupeError['code']): code is ModelFailure['code'] {
  return code.startsWith('provider_');
}
