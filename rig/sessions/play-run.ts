import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { below, pick, type Random, randomOf } from '../../sim/random.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { Event, TurnId } from '../../src/events/index.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { checkRun } from './check-run.ts';
import { childProcesses } from './child-processes.ts';
import { type Cli, startVendor, type Vendor } from './fake-vendor.ts';
import { markerOf } from './markers.ts';

export interface RunResult {
  seed: number;
  problems: string[];
  figures: Record<RunFigure, number>;
}

export type RunFigure =
  | 'turns'
  | 'requests'
  | 'aborts'
  | 'kills'
  | 'restarts'
  | 'errors'
  | 'cuts'
  | 'calls'
  | 'compactions'
  | 'rewound'
  | 'resumed'
  | 'rebuilt'
  | 'sentTokens'
  | 'wholeTokens';

const AGENT = 'cli';
const OTHER = 'other';
const CONVERSATION = 'talk';
const PERSON = { kind: 'user', id: 'u1', name: 'Ana' } as const;
/** A turn that takes longer than this with a fake model hangs. */
const PATIENCE_MS = 60_000;
const ACTIONS = { least: 6, more: 7 };
/** Divisor of the engine's backoff: the vendor is a fake. */
const HASTE = 20;

/** `{{n}}` is the number of the answer in the conversation. */
const OTHER_MARKER = '<<other-{{n}}>>';

let said = 0;

/** One conversation with a real program under random faults. The requests to its API are then checked. */
export async function playRun(
  cli: Cli,
  seed: number,
  look: (vendor: Vendor, events: readonly Event[]) => void = () => undefined,
): Promise<RunResult> {
  const random = randomOf(seed, cli);
  const dir = mkdtempSync(join(tmpdir(), 'troupe-sessions-'));
  await using vendor = await startVendor(cli, random);
  const figures = { aborts: 0, kills: 0, restarts: 0 };
  const stage = { cli, dir, vendor };
  let troupe = await open(stage);
  try {
    for (let left = ACTIONS.least + below(random, ACTIONS.more); left > 0; left--) {
      const dice = random();
      if (dice < 0.5) await say(troupe, [AGENT]);
      else if (dice < 0.6) await say(troupe, []);
      else if (dice < 0.72) await say(troupe, pick(random, [[OTHER], [OTHER, AGENT]]));
      else if (dice < 0.84) figures.aborts += (await abort(troupe)) ? 1 : 0;
      else if (dice < 0.93) figures.kills += kill(random);
      else {
        await troupe.close();
        troupe = await open(stage);
        figures.restarts += 1;
      }
      await systemClock.sleep(random() < 0.5 ? 0 : below(random, 400));
      if (random() < 0.3) await quiet(troupe);
    }
    vendor.calm();
    await say(troupe, [AGENT]);
    await quiet(troupe);
    const { events } = await troupe.events(CONVERSATION, { limit: 10_000 });
    look(vendor, events);
    const problems = checkRun(events, AGENT, vendor.seen);
    return {
      seed,
      problems,
      figures: { ...figures, ...figuresOf(events, vendor), ...(await economyOf(troupe, events)) },
    };
  } catch (error) {
    const problems = [`the run broke off: ${error instanceof Error ? error.message : String(error)}`];
    return {
      seed,
      problems,
      figures: { ...figures, ...figuresOf([], vendor), sentTokens: 0, wholeTokens: 0 },
    };
  } finally {
    await troupe.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function open({ cli, dir, vendor }: { cli: Cli; dir: string; vendor: Vendor }): Promise<Troupe> {
  const hasty: Clock = {
    ...systemClock,
    sleep: (ms, signal) => systemClock.sleep(ms < 120_000 ? ms / HASTE : ms, signal),
  };
  const definition: TroupeInput = {
    agents: [
      {
        id: AGENT,
        provider: cli,
        model: cli === 'codex' ? 'gpt-5.5' : 'sonnet',
        baseUrl: vendor.server.url,
        apiKeyEnv: 'KEY_OF_RIG',
        tools: ['note'],
        instructions: 'You answer.',
        // The program must compact, not Troupe.
        contextWindow: 10_000_000,
      },
      { id: OTHER, provider: 'scripted', script: { rules: [{ reply: `hm, ${OTHER_MARKER} I think` }] } },
    ],
    tools: [
      defineTool({
        name: 'note',
        description: 'notes something',
        schema: z.object({ slow: z.boolean().optional() }),
        idempotent: true,
        async run({ slow }, { signal }) {
          await systemClock.sleep(slow ? 300 : 5, signal);
          return 'noted';
        },
      }),
    ],
  };
  return createTroupe(definition, {
    data: join(dir, 'data'),
    clock: hasty,
    env: { ...process.env, KEY_OF_RIG: 'sk-ant-key-of-rig' },
    onWarning: () => undefined,
  });
}

async function say(troupe: Troupe, to: string[]): Promise<void> {
  const words = `please, ${markerOf('said', (said += 1))} is my question`;
  await troupe.send(CONVERSATION, { author: PERSON, content: words, to });
}

async function abort(troupe: Troupe): Promise<boolean> {
  const actors = await troupe.actors(CONVERSATION).catch(() => []);
  const turn = actors.find(({ agent }) => agent === AGENT)?.turn;
  if (!turn) return false;
  return troupe.command({ command: 'abort', turn: turn satisfies TurnId }, PERSON).then(
    () => true,
    () => false,
  );
}

/** Kills one of the processes behind the agent, or all. */
function kill(random: Random): number {
  const pids = childProcesses();
  const victims = random() < 0.5 ? pids : pids.slice(0, 1);
  for (const pid of victims) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
  return victims.length > 0 ? 1 : 0;
}

/** Resolves when everything addressed to the agent is settled. */
async function quiet(troupe: Troupe): Promise<void> {
  const until = systemClock.monotonic() + PATIENCE_MS;
  for (;;) {
    const actors = await troupe.actors(CONVERSATION).catch(() => []);
    const { waiting, active, delayed } = await troupe.queues();
    const isIdle = actors.every(({ status, turn }) => status === 'idle' && turn === null);
    if (isIdle && waiting + active + delayed === 0) return;
    const failed = actors.find(({ status }) => status === 'failed');
    if (failed) throw new Error(`@${failed.agent} failed: ${await lastError(troupe)}`);
    if (systemClock.monotonic() > until)
      throw new Error(`not quiet after ${PATIENCE_MS} ms: ${JSON.stringify(actors)}`);
    await systemClock.sleep(20);
  }
}

async function lastError(troupe: Troupe): Promise<string> {
  const { events } = await troupe.events(CONVERSATION, { limit: 10_000 });
  return JSON.stringify(events.findLast(({ kind }) => kind === 'error')?.body);
}

function figuresOf(events: readonly Event[], { seen, figures }: Vendor) {
  const count = (change: string) =>
    events.filter(({ kind, body }) => kind === 'session.changed' && body.change === change).length;
  return {
    turns: events.filter(({ kind, author }) => kind === 'turn.started' && author.id === AGENT).length,
    requests: seen.length,
    errors: figures.errors + figures.overflows,
    cuts: figures.cuts,
    calls: figures.calls,
    compactions: figures.compactions,
    rewound: count('rewound'),
    resumed: count('resumed'),
    rebuilt: count('rebuilt'),
  };
}

/** Characters sent to the program for its turns, compared with whole prompts. */
async function economyOf(troupe: Troupe, events: readonly Event[]) {
  let sentTokens = 0;
  let wholeTokens = 0;
  for (const { kind, turn, author } of events) {
    if (kind !== 'turn.done' || turn === undefined || author.id !== AGENT) continue;
    const { prompts } = await troupe.trace(turn);
    sentTokens += prompts.reduce((sum, { tokens }) => sum + tokens.total, 0);
    wholeTokens += prompts.reduce((sum, { tokens }) => sum + tokens.estimate, 0);
  }
  return { sentTokens, wholeTokens };
}
