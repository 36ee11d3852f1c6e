import { setTimeout as wait } from 'node:timers/promises';
import { Hono } from 'hono';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author, Event } from '../../src/events/index.ts';
import { createApp, serveHttp, type AppOptions, type HttpServer } from '../../src/http/api/index.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { NewMessage, Troupe } from '../../src/library/troupe.ts';
import { createStoryClock, type StoryClock } from './story-clock.ts';
import { startVendor, type Line, type Vendor } from './vendor.ts';

export const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
export const BEN: Author = { kind: 'user', id: 'ben', name: 'Ben' };

/** A company with a scripted vendor. */
export interface Play {
  company: (vendorUrl: string, clock: StoryClock) => TroupeInput;
  lines: readonly Line[];
  /** Concurrent turns. */
  concurrency?: number;
}

export interface StageOptions {
  app?: AppOptions;
  /** Mount path of the app, such as `/inspector`. */
  mount?: string;
  /** Data directory. Default: in memory. */
  data?: string;
  /** Only callers with a key of the troupe are admitted. Default: all of this machine. */
  needsKey?: true;
}

/** A real troupe behind a real server, for the page. */
export interface PageStage extends AsyncDisposable {
  troupe: Troupe;
  clock: StoryClock;
  vendor: Vendor;
  /** URL of the page, with a slash at its end. */
  readonly url: string;
  /** Sends a message. `play` also waits until all agents are idle. */
  say(
    conversation: string,
    to: readonly string[],
    content: string,
    more?: Partial<NewMessage>,
  ): Promise<Event>;
  play(
    conversation: string,
    to: readonly string[],
    content: string,
    more?: Partial<NewMessage>,
  ): Promise<void>;
  /** Resolves once the conversation has such an event. */
  until(conversation: string, isThere: (event: Event) => boolean): Promise<Event>;
  events(conversation: string): Promise<Event[]>;
  /** Stops only the server; troupe and data stay. `start` uses the same port again. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export const WRITE_TOKEN = 'token-of-this-start';
/** A built page other than `dist/web`, for work on the page. */
const WEB = process.env['TROUPE_TEST_WEB'];
const PAUSE_MS = 1_200;
const LOOK_MS = 50;
const PATIENCE_MS = 90_000;
const PAGE = 5_000;

export async function openStage(play: Play, options: StageOptions = {}): Promise<PageStage> {
  const { mount = '', data, needsKey, app: appOptions } = options;
  const clock = createStoryClock();
  const vendor = await startVendor(play.lines, clock);
  const troupe = await createTroupe(play.company(vendor.url, clock), {
    env: { KEY: 'k' },
    clock,
    onWarning: () => {},
    ...(play.concurrency !== undefined && { concurrency: play.concurrency }),
    ...(data !== undefined && { data }),
  });
  let running: { server: HttpServer; ending: AbortController } | null = null;
  let port = 0;

  async function start(): Promise<void> {
    const ending = new AbortController();
    const app = createApp(troupe, {
      clock,
      writeToken: WRITE_TOKEN,
      ...(WEB !== undefined && { web: WEB }),
      ...(needsKey && { keyless: 'refused', authenticate: (secret: string) => troupe.authenticate(secret) }),
      ...appOptions,
      signal: ending.signal,
    });
    const mounted = mount === '' ? app : new Hono().route(mount, app);
    const server = await serveHttp(mounted, { port, tries: 1 });
    port = server.port;
    running = { server, ending };
  }

  async function stop(): Promise<void> {
    running?.ending.abort();
    await running?.server.close();
    running = null;
  }

  async function events(conversation: string): Promise<Event[]> {
    const all: Event[] = [];
    for (;;) {
      const page = await troupe.events(conversation, { after: all.length, limit: PAGE });
      all.push(...page.events);
      if (all.length >= page.head) return all;
    }
  }

  await start();
  const stage: PageStage = {
    troupe,
    clock,
    vendor,
    get url() {
      return `http://127.0.0.1:${port}${mount}/`;
    },
    async say(conversation, to, content, more = {}) {
      clock.pass(PAUSE_MS);
      const { event } = await troupe.send(conversation, { author: ANA, to, content, ...more });
      return event;
    },
    async play(conversation, to, content, more) {
      await stage.say(conversation, to, content, more);
      await troupe.idle();
    },
    async until(conversation, isThere) {
      const deadline = Date.now() + PATIENCE_MS;
      for (;;) {
        const found = (await events(conversation).catch(() => [])).findLast(isThere);
        if (found) return found;
        if (Date.now() > deadline) throw new Error(`no such event in ${conversation}`);
        await wait(LOOK_MS);
      }
    },
    events,
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop();
      // A hanging turn would block the close of the troupe.
      await vendor.close();
      await troupe.close();
    },
  };
  return stage;
}
