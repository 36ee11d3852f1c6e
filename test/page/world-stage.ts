import { createApp, serveHttp } from '../../src/http/api/index.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import {
  createWorldClock,
  makeKeys,
  playWorld,
  SMALL_WORLD,
  type WorldClock,
  worldCompany,
  type WorldSize,
} from './world.ts';

export interface WorldOptions {
  /** Data directory. Default: in memory. */
  data?: string;
  /** It is played already. */
  isPlayed?: boolean;
  seed?: number;
  size?: WorldSize;
  /** Default: a free one. */
  port?: number;
  /** Only callers with a key are admitted. Default: all of this machine. */
  needsKey?: boolean;
  told?: (done: number) => void;
}

/** A world behind a real server. Its clock is the clock of the system by now. */
export interface WorldStage extends AsyncDisposable {
  troupe: Troupe;
  clock: WorldClock;
  /** URL of the page, with a slash at its end. */
  url: string;
  /** Keys by their names: see `makeKeys`. */
  keys: Record<string, string>;
}

/** A built page other than `dist/web`, for work on the page. */
const WEB = process.env['TROUPE_TEST_WEB'];

export async function openWorld(options: WorldOptions = {}): Promise<WorldStage> {
  const { data, isPlayed, seed = 1, size = SMALL_WORLD, port = 0, needsKey, told } = options;
  const clock = createWorldClock();
  if (isPlayed) clock.free();
  const troupe = await createTroupe(worldCompany(clock), {
    clock,
    onWarning: () => {},
    ...(data !== undefined && { data, durability: 'process' }),
  });
  if (!isPlayed) await playWorld(troupe, clock, { seed, size, ...(told && { told }) });
  const ending = new AbortController();
  const app = createApp(troupe, {
    clock,
    writeToken: 'token-of-this-start',
    ...(WEB !== undefined && { web: WEB }),
    ...(needsKey && { keyless: 'refused' as const }),
    authenticate: (secret: string) => troupe.authenticate(secret),
    signal: ending.signal,
  });
  const server = await serveHttp(app, { port, tries: port === 0 ? 1 : 20 });
  return {
    troupe,
    clock,
    url: `http://127.0.0.1:${server.port}/`,
    keys: await makeKeys(troupe),
    async [Symbol.asyncDispose]() {
      ending.abort();
      await server.close();
      await troupe.close();
    },
  };
}
