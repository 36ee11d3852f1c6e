import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import {
  type Clock,
  guardedStream,
  makePrivateDir,
  type ModelEvent,
  type ModelRequest,
  type Provider,
  replyLimits,
  type ReplyLimitSettings,
  type StreamWatch,
  systemClock,
} from '../troupe.ts';
import { WITH_SESSIONS } from '../programs.ts';
import { type AppServer, startAppServer } from './app-server.ts';
import { codexEnv, codexHome, type CodexSettings, findCodex, NAME, writeHome } from './config.ts';
import { Sessions } from './sessions.ts';

/** Codex, its process and limits. */
export interface CodexOptions extends CodexSettings {
  /** Default: the system's. */
  clock?: Clock;
  /** Time for the program to become ready. */
  startTimeoutMs?: number;
  /** Limits of the size and duration of an answer. A tool of Codex itself may run long in silence. */
  replyLimits?: ReplyLimitSettings;
}

/** Special tokens of its models, and its own tags. */
const MARKS = ['tokens', 'clients'] as const;

const START_TIMEOUT_MS = 30_000;

/**
 * OpenAI's Codex CLI as a stateful provider: one `codex app-server` process, started with the first request and again
 * after it died. Each session is a thread of it. `maxOutputTokens` has no effect.
 */
export function createCodex(options: CodexOptions): Provider {
  const { clock = systemClock, startTimeoutMs = START_TIMEOUT_MS } = options;
  const limits = replyLimits(options.replyLimits);
  const work = options.cwd ?? join(options.home, 'work');
  const secrets = options.apiKey === undefined ? [] : [options.apiKey];
  let running: Promise<{ server: AppServer; sessions: Sessions }> | null = null;

  function run(): NonNullable<typeof running> {
    if (running) return running;
    const started = start();
    running = started;
    const forget = () => {
      if (running === started) running = null;
    };
    started.then(({ server }) => server.ended.then(forget), forget);
    return started;
  }

  /** The end of the process is known before all of its output has been read. */
  async function alive(): NonNullable<typeof running> {
    const found = await run();
    if (found.server.isAlive) return found;
    await found.server.ended;
    return run();
  }

  async function start(): Promise<{ server: AppServer; sessions: Sessions }> {
    const codex = findCodex();
    const dir = writeHome(options);
    const env = codexEnv(options, dir);
    const server = await startAppServer({ codex, env, cwd: dir, clock, startTimeoutMs, limits });
    const hasShell = options.builtinTools.includes('shell');
    const sessions = new Sessions({
      server,
      clock,
      sandbox: options.sandbox,
      hasShell,
      secrets,
      cwdOf: (cacheKey) => cwdOf(options, work, cacheKey),
      limits,
    });
    return { server, sessions };
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const { sessions } = await alive();
    yield* sessions.stream(request, watch);
  }

  return {
    name: NAME,
    capabilities: { ...WITH_SESSIONS, templateMarks: MARKS },
    home: `${hostname()}:${codexHome(options)}:${work}`,
    cwdOf: (cacheKey) => cwdOf(options, work, cacheKey),
    stream: guardedStream({ name: NAME, limits, remembers: true, secrets, templateMarks: MARKS, read }),
    leave: (cacheKey) =>
      void running?.then(
        ({ sessions }) => sessions.leave(cacheKey),
        () => {},
      ),
    async close() {
      const stopping = running;
      running = null;
      const { server } = (await stopping?.catch(() => null)) ?? {};
      await server?.close();
    },
  };
}

function cwdOf({ cwd }: CodexOptions, work: string, cacheKey: string): string {
  const own = createHash('sha256').update(cacheKey).digest('hex').slice(0, 16);
  const dir = cwd ?? join(work, own);
  makePrivateDir(dir);
  return dir;
}
