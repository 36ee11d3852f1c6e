import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { makePrivateDir } from '../../private-files.ts';
import { guardStream, type StreamWatch } from '../guard-stream.ts';
import {
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  STATELESS,
} from '../provider.ts';
import { type ReplyLimitSettings, replyLimits } from '../reply-limits.ts';
import { type AppServer, startAppServer } from './app-server.ts';
import { codexEnv, codexHome, type CodexSettings, findCodex, NAME, writeHome } from './config.ts';
import { Sessions } from './sessions.ts';

export interface CodexOptions extends CodexSettings {
  clock?: Clock;
  /** How long the program may take to be ready. */
  startTimeoutMs?: number;
  /** How much is taken of an answer, and for how long; a tool of its own may run long in silence. */
  replyLimits?: ReplyLimitSettings;
}

const START_TIMEOUT_MS = 30_000;

/**
 * OpenAI's Codex CLI as a provider that remembers: one `codex app-server` process, started with the first request and
 * again after it died, in which each session is a thread. `maxOutputTokens` means nothing to it.
 */
export function createCodex(options: CodexOptions): Provider {
  const { clock = systemClock, startTimeoutMs = START_TIMEOUT_MS } = options;
  const limits = replyLimits(options.replyLimits);
  const work = options.cwd ?? join(options.home, 'work');
  const secrets = options.apiKey === undefined ? [] : [options.apiKey];
  let running: Promise<{ server: AppServer; sessions: Sessions }> | null = null;

  function cwdOf(cacheKey: string): string {
    const own = createHash('sha256').update(cacheKey).digest('hex').slice(0, 16);
    const dir = options.cwd ?? join(work, own);
    makePrivateDir(dir);
    return dir;
  }

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

  /** That it has ended is known before all it said has been read. */
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
      cwdOf,
      limits,
    });
    return { server, sessions };
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    try {
      const { sessions } = await alive();
      yield* sessions.stream(request, watch);
    } catch (thrown) {
      if (!(thrown instanceof TroupeError) || !isOurs(thrown.code)) throw thrown;
      yield { type: 'failed', error: { code: thrown.code, message: thrown.message } };
    }
  }

  return {
    name: NAME,
    capabilities: { ...STATELESS, sessionResumption: true, rewind: true, fork: true, images: true },
    home: `${hostname()}:${codexHome(options)}:${work}`,
    stream: (request, { signal }) =>
      guardStream({
        request,
        signal,
        limits,
        remembers: true,
        read: (watch) => read(request, watch),
        secrets,
      }),
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

function isOurs(code: TroupeError['code']): code is ModelFailure['code'] {
  return code.startsWith('provider_');
}
