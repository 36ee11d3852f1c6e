import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beginTurn, foldEvent, type TurnInput, type View } from '../../src/context/index.ts';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { collectFacts } from '../../src/context/extract/facts.ts';
import { extractKeyMessages } from '../../src/context/extract/key-messages.ts';
import type { AgentId, Event, EventDraft, EventId, TurnId } from '../../src/events/index.ts';
import { logged, viewOf } from '../../test/support/log-player.ts';
import { HAS_DATA } from '../../test/support/real-logs.ts';
import { below, atLeast, figure, median, type Scored } from '../figure.ts';
import { longLog } from '../long-log.ts';
import type { Options } from '../options.ts';
import { promptFor, Replay } from '../replay.ts';
import { Compactor, windowFor } from '../compactor.ts';
import type { ViewReport } from '../weigh-view.ts';

const AGENT = 'assistant' as AgentId;
const WINDOW = 200_000;

/** On a conversation of 10,000 events. Times are of this machine; the goals leave room for a slow one. */
export async function scoreSpeed({ quick, note }: Options): Promise<Scored> {
  const log = await longLog();
  note(`a log of ${log.length} events`);
  const colds = timed(quick ? 3 : 15, () => promptFor(ready(viewOf(AGENT, log))));
  const cold = median(colds.map(({ ms }) => ms));
  const warm = warmTimes(log, quick ? 100 : 1_000);
  const weighed = weighInProcess();
  const chain = promptFor(ready(viewOf(AGENT, log))).chain;
  const { chain: chainElsewhere, textBytes, heldBytes } = weighed;
  const { select, runCompaction } = compactionTimes(log, note);
  return {
    figures: [
      figure('one event appended: fold, begin the turn, build', median(warm), 'ms', below(1)),
      figure('  the same, p99', warm.toSorted((a, b) => a - b)[Math.floor(warm.length * 0.99)] ?? NaN, 'ms'),
      figure('all events folded and built, from scratch', cold, 'ms', below(150)),
      figure('  of them on the processor', median(colds.map(({ cpuMs }) => cpuMs)), 'ms', below(150)),
      figure('  per 1,000 events', (cold / log.length) * 1_000, 'ms'),
      figure(
        'memory of a warm view relative to the bytes of its texts',
        heldBytes / textBytes,
        'ratio',
        below(3),
      ),
      figure('  its texts, UTF-8', textBytes, 'bytes'),
      figure('chain hash the same in another process', chain === chainElsewhere ? 1 : 0, 'share', atLeast(1)),
      figure(`compaction of the whole log, facts and quotes, without a model`, select, 'ms'),
      figure(`  all strategies, into a window of ${WINDOW.toLocaleString('en')}`, runCompaction, 'ms'),
    ],
    violations: chain === chainElsewhere ? [] : [`chain ${chain} here, ${chainElsewhere} in another process`],
    ...(!HAS_DATA && { skipped: 'the words of real logs: a made-up log instead' }),
  };
}

function ready(view: View) {
  return { view, agent: AGENT, step: 0 };
}

/** CPU time shows the work even on a busy machine; the goals apply to elapsed time. */
function timed(rounds: number, work: () => void): { ms: number; cpuMs: number }[] {
  return Array.from({ length: rounds }, () => {
    globalThis.gc?.();
    const before = process.threadCpuUsage();
    const start = performance.now();
    work();
    const ms = performance.now() - start;
    const { user, system } = process.threadCpuUsage(before);
    return { ms, cpuMs: (user + system) / 1_000 };
  });
}

/** Times each turn from the message to the prompt, without the answer. */
function warmTimes(log: readonly Event[], rounds: number): number[] {
  const view = viewOf(AGENT, log);
  return Array.from({ length: rounds }, (_, round) => {
    const asked = logged(
      {
        id: `ask-${round}` as EventId,
        author: { kind: 'user', id: 'user', name: 'User' },
        to: [AGENT],
        kind: 'message',
        body: { content: `What is next, number ${round}?` },
      },
      view.upTo + 1,
    );
    const id = `c:assistant:warm${round}` as TurnId;
    const turn: TurnInput = {
      id,
      upTo: asked.seq,
      inputs: [asked.seq],
      live: { time: 'now' },
      join: 'full',
      baseline: 'b',
    };
    const start = performance.now();
    foldEvent(view, asked);
    beginTurn(view, turn);
    promptFor(ready(view));
    const took = performance.now() - start;
    for (const draft of answerTo(turn)) foldEvent(view, logged(draft, view.upTo + 1));
    return took;
  });
}

function answerTo({ id: turn, inputs, ...rest }: TurnInput): EventDraft[] {
  const own = { author: { kind: 'agent' as const, id: AGENT, name: AGENT }, to: [], turn };
  const id = (part: string) => `${turn}:${part}` as EventId;
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  return [
    { ...own, id: id('started'), kind: 'turn.started', body: { inputs, ...rest } },
    { ...own, id: id('reply'), kind: 'message', body: { content: 'The next file.' } },
    { ...own, id: id('end'), kind: 'turn.done', body: { covers: inputs, steps: 1, usage } },
  ];
}

/** In a separate process, with nothing else on the heap. */
function weighInProcess(): ViewReport {
  const script = fileURLToPath(new URL('../weigh-view.ts', import.meta.url));
  const { stdout, status, stderr } = spawnSync(process.execPath, ['--expose-gc', script], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`weigh-view failed: ${stderr}`);
  return JSON.parse(stdout) as ViewReport;
}

function compactionTimes(
  log: readonly Event[],
  note: Options['note'],
): { select: number; runCompaction: number } {
  const start = performance.now();
  collectFacts(log, null);
  extractKeyMessages({ events: log, previous: null, budget: 30_000, count: countTokens });
  const select = performance.now() - start;
  const replay = new Replay(() => AGENT);
  replay.log.push(...log);
  const view = replay.view(AGENT);
  const before = view.tokens;
  const compactor = new Compactor(windowFor({ window: WINDOW }));
  const at = log.at(-1)?.at ?? 0;
  const turn: TurnInput = {
    id: 't' as TurnId,
    upTo: log.length,
    inputs: [],
    live: {},
    join: 'full',
    baseline: 'b',
  };
  beginTurn(view, turn);
  const begin = performance.now();
  compactor.beforeCall(replay, { agent: AGENT, view, turn, step: 1, at, output: 0, outputs: [] });
  const runCompaction = performance.now() - begin;
  note(`compacted from ${before} to ${view.tokens} tokens`);
  return { select, runCompaction };
}
