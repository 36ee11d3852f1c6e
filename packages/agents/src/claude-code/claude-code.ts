import { hostname } from 'node:os';
import { join } from 'node:path';
import {
  type Clock,
  guardedStream,
  type ModelEvent,
  type ModelRequest,
  type Provider,
  replyLimits,
  type ReplyLimitSettings,
  type StreamWatch,
  systemClock,
} from '../troupe.ts';
import { WITH_SESSIONS } from '../programs.ts';
import { type AgentSdk, loadAgentSdk } from './agent-sdk.ts';
import { type ClaudeCodeSettings, configDir, workDir } from './launch.ts';
import { createProcesses } from './processes.ts';
import { promptBlocks } from './prompt-blocks.ts';
import { readTurn, type ReadTurnOptions } from './read-turn.ts';
import { launchOf, type OpenTurn, Sessions, type TurnEnd } from './sessions.ts';

/** Claude Code, its processes and limits. */
export interface ClaudeCodeOptions extends ClaudeCodeSettings {
  /** Default: the system's. */
  clock?: Clock;
  /** Time until an unused session gives up its process. Default 300,000 ms. */
  idleMs?: number;
  /** Beyond this number, the process that was idle longest is closed. One takes about 200 MB. Default 8. */
  maxProcesses?: number;
  /** Time for the program to become ready. */
  startTimeoutMs?: number;
  /**
   * Limits of the size and duration of an answer. While a tool of the program runs, it sends a sign of life every 30
   * s.
   */
  replyLimits?: ReplyLimitSettings;
}

const NAME = 'claude-code';
/** As for Anthropic's API. */
const MARKS = ['speakers', 'clients'] as const;
const IDLE_MS = 300_000;
const MAX_PROCESSES = 8;
const START_TIMEOUT_MS = 30_000;

/**
 * Claude Code as a stateful provider: one session per cache key, held by a process that stays open between turns. It
 * is sent only what it has not seen, and is rewound to its mark after a turn that broke off.
 */
export function createClaudeCode(options: ClaudeCodeOptions): Provider {
  const { clock = systemClock, idleMs = IDLE_MS, maxProcesses = MAX_PROCESSES } = options;
  const { startTimeoutMs = START_TIMEOUT_MS } = options;
  const limits = replyLimits(options.replyLimits);
  const secrets = options.apiKey === undefined ? [] : [options.apiKey];
  let sdk: AgentSdk | undefined;
  const loadSdk = async () => (sdk ??= await loadAgentSdk());
  const processes = createProcesses({ loadSdk, settings: options, startTimeoutMs, limits });
  const sessions = new Sessions({ processes, home: options.home, clock, idleMs, maxProcesses });

  /**
   * Ends the process if the reader leaves. Settles the slot before the last event, because the reader may stop there.
   */
  async function* readInSession(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const slot = sessions.slot(request.cacheKey);
    const before = slot.free;
    const mine = Promise.withResolvers<void>();
    slot.free = mine.promise;
    let isOver = false;
    const end = (how: TurnEnd) => {
      if (!isOver) sessions.settle(slot, how);
      isOver = true;
      mine.resolve();
    };
    try {
      await before;
      if (watch.signal.aborted) {
        // The session is unchanged, because nothing was sent.
        isOver = true;
        return;
      }
      const turn = await sessions.begin(slot, request);
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

  /** Answers outside of all sessions and leaves no trace in them. */
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

  function read(request: ModelRequest, watch: StreamWatch, turn: OpenTurn): AsyncGenerator<ModelEvent> {
    const version = sdk?.version ?? '';
    return readStoppable({ ...turn, request, provider: NAME, version, secrets, watch }, watch.signal);
  }

  return {
    name: NAME,
    capabilities: { ...WITH_SESSIONS, templateMarks: MARKS },
    home: `${hostname()}:${configDir(options)}:${options.cwd ?? join(options.home, 'work')}`,
    cwdOf: (cacheKey) => workDir(options, cacheKey),
    stream: guardedStream({
      name: NAME,
      limits,
      remembers: true,
      secrets,
      templateMarks: MARKS,
      read: (request, watch) => (request.session ? readInSession(request, watch) : readOnce(request, watch)),
    }),
    leave: (cacheKey) => sessions.leave(cacheKey),
    close: () => processes.close(),
  };
}

/** Reads a turn, and stops its process if the reader leaves before the last event. */
async function* readStoppable(options: ReadTurnOptions, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  const stop = () => void options.process.stop();
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  try {
    for await (const event of readTurn(options)) {
      // The reader aborts the rest of a request after its last event; the process must survive that.
      if (isLast(event)) signal.removeEventListener('abort', stop);
      yield event;
    }
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function isLast({ type }: ModelEvent): boolean {
  return type === 'done' || type === 'failed';
}

function endOf(event: ModelEvent): TurnEnd {
  if (event.type !== 'done') return { kind: 'broken' };
  if (event.stop === 'calls') return { kind: 'waits' };
  return event.session ? { kind: 'done', mark: event.session } : { kind: 'broken' };
}
