import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { startFakeAnthropic, startFakeOpenAiResponses } from '../../packages/testing/src/fake-vendors.ts';
import { percentile } from '../recovery.ts';
import { talkToBareClaude } from './bare-claude.ts';
import { talkToBareCodex } from './bare-codex.ts';
import { talkByAdapter } from './by-adapter.ts';
import { talkByTroupe } from './by-troupe.ts';
import type { Cli } from './fake-vendor.ts';
import type { Talk, TalkOptions } from './talk.ts';

/** The program alone, with our adapter, or with all of Troupe. */
export type Way = 'bare' | 'adapter' | 'troupe';

/** Milliseconds of warm turns. */
export interface TurnTimes {
  p50: number;
  p90: number;
  /** Median of the time until the API gets the request. */
  untilAsked: number;
  /** Median of the remaining time; the API answers at once. */
  afterAsked: number;
}

/** Turns after the first one, which starts the program, until hot code is compiled. */
const WARM_UP_TURNS = 5;
/** Lets one way finish its work after a turn, so that it does not slow the next one. */
const PAUSE_MS = 40;
const PATIENCE_MS = 30_000;
const ANSWER = 'That depends on the season, on the harbour and on who keeps the books there. '.repeat(3);
/** Characters per delta; an answer has about ten deltas. */
const CHUNK = 24;

/** All ways in one run, alternating turn by turn, so that other load affects them alike. */
export async function timeTalks(cli: Cli, turns: number): Promise<Record<Way, TurnTimes>> {
  await using opened = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'troupe-overhead-'));
  opened.defer(() => rmSync(dir, { recursive: true, force: true }));
  let askedAt = 0;
  const start = cli === 'codex' ? startFakeOpenAiResponses : startFakeAnthropic;
  const { url } = opened.use(
    await start(() => {
      askedAt = performance.now();
      return { text: ANSWER, chunk: CHUNK };
    }),
  );
  const at = (way: Way): TalkOptions => ({ url, dir: join(dir, way) });
  const talks: Record<Way, Talk> = {
    bare: opened.use(await (cli === 'codex' ? talkToBareCodex : talkToBareClaude)(at('bare'))),
    adapter: opened.use(talkByAdapter(cli, at('adapter'))),
    troupe: opened.use(await talkByTroupe(cli, at('troupe'))),
  };

  async function timeTurn(way: Way, turn: number): Promise<{ until: number; after: number }> {
    await systemClock.sleep(PAUSE_MS);
    const began = performance.now();
    const words = `Question ${turn}: what would you advise the office, and why?`;
    const answer = await inTime(talks[way].say(words), `turn ${turn} by ${way}`);
    const ended = performance.now();
    // An incomplete answer would count as a fast one.
    if (answer !== ANSWER) throw new Error(`turn ${turn} by ${way} got the answer: ${answer}`);
    return { until: askedAt - began, after: ended - askedAt };
  }

  const times: Record<Way, { until: number; after: number }[]> = { bare: [], adapter: [], troupe: [] };
  for (let turn = 0; turn <= WARM_UP_TURNS + turns; turn++) {
    for (const way of inTurn(turn)) {
      const time = await timeTurn(way, turn);
      if (turn > WARM_UP_TURNS) times[way].push(time);
    }
  }
  return { bare: summary(times.bare), adapter: summary(times.adapter), troupe: summary(times.troupe) };
}

const ORDERS: readonly (readonly Way[])[] = [
  ['bare', 'troupe', 'adapter'],
  ['troupe', 'adapter', 'bare'],
  ['adapter', 'bare', 'troupe'],
];

/** Each way comes first, second and last equally often. */
function inTurn(turn: number): readonly Way[] {
  return ORDERS[turn % ORDERS.length] ?? [];
}

function summary(times: readonly { until: number; after: number }[]): TurnTimes {
  const whole = times.map(({ until, after }) => until + after);
  const median = (values: readonly number[]) => percentile(values, 0.5);
  return {
    p50: median(whole),
    p90: percentile(whole, 0.9),
    untilAsked: median(times.map(({ until }) => until)),
    afterAsked: median(times.map(({ after }) => after)),
  };
}

async function inTime<T>(promise: Promise<T>, what: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(`${what} was not over after ${PATIENCE_MS} ms`));
  }, PATIENCE_MS);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
