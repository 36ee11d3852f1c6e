import * as z from 'zod';
import { TroupeError } from '../../src/base/errors.ts';
import type { AgentId, BusyPolicy, ConversationId, EventId, TurnId } from '../../src/events/index.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createStore } from '../../src/store/create-store.ts';
import { checkSessions, type Violation } from '../../packages/testing/src/check-log.ts';
import { createFakeSessions, newSessionMemory } from '../../packages/testing/src/fake-sessions.ts';
import { createFakeClock, type FakeClock } from '../../packages/testing/src/fake-clock.ts';
import { defineTool, type Tool } from '../../src/tools/tool.ts';
import { forever, storeAway, tapDriver } from './engine-driver.ts';
import { asks, breaks, modelOf, says } from './engine-models.ts';
import { allEvents, ANA, checkStore, logOf, openStage, type Stage, turns } from './engine-stage.ts';
import { hashOf, type Random } from './engine-random.ts';
import { openDriver } from './mode.ts';
import { coverProblems, unverified } from './steer-stage.ts';

/**
 * A small world for fault injection: one store, and processes that may be killed, paused for longer than a lease, or
 * see store operations fail before or after they took effect. Clients repeat unacknowledged posts; people stop turns
 * and pause agents. All randomness comes from one seed.
 */
export interface WorldOptions {
  random: Random;
  processes: number;
  /** Share of store operations that fail, half of them after they took effect. */
  failures: number;
  kills: boolean;
  pauses: boolean;
  /** One agent's provider keeps sessions; with or without the ability to rewind them. */
  sessions?: { rewind: boolean };
  /** Agents keep lists, and sometimes give an empty answer, which is rejected. */
  supervised?: boolean;
  /** Some messages steer or interrupt a busy agent. */
  steers?: boolean;
}

export interface World {
  /** Performs one random action. */
  act(): Promise<void>;
  /** Stops the faults and advances time until nothing is left to do. Returns the elapsed time, ms. */
  settle(): Promise<number>;
  violations(): Promise<string[]>;
  stats: Record<
    'posts' | 'turns' | 'failures' | 'kills' | 'pauses' | 'aborts' | 'calls' | 'steered' | 'corrections',
    number
  >;
}

export const LEASE_MS = 2_000;
export const SWEEP_MS = 3_000;
const AGENTS = ['bo', 'cy', 'di'];
/** The agent whose provider keeps sessions, in worlds that have one. */
const REMEMBERS = 'cy';
const CONVERSATIONS = ['c1', 'c2'];
/** Longest time that a world may take to settle: a lease that expires, two sweeps, and the work itself. */
const PATIENCE_MS = 120_000;

interface Process {
  stage: Stage;
  sleeps: FakeClock;
  dead: boolean;
  died: PromiseWithResolvers<'died'>;
  paused: PromiseWithResolvers<void> | null;
  /** Time that passed while it was paused. */
  lag: number;
}

export async function openWorld(options: WorldOptions): Promise<World> {
  const { random, pauses, kills } = options;
  const driver = await openDriver();
  const store = createStore(driver);
  const stats = {
    posts: 0,
    turns: 0,
    failures: 0,
    kills: 0,
    pauses: 0,
    aborts: 0,
    calls: 0,
    steered: 0,
    corrections: 0,
  };
  const ledger = new Map<string, number>();
  const acked = new Set<string>();
  const cancelled: TurnId[] = [];
  const clients = new Set<Promise<unknown>>();
  let faults = true;
  let elapsed = 0;
  // One per machine: the sessions of a provider outlive the processes of its machine.
  const memories = Array.from({ length: options.processes }, newSessionMemory);
  const processes: Process[] = [];
  for (let i = 0; i < options.processes; i++) processes.push(await boot(i));

  async function boot(machine: number): Promise<Process> {
    const sleeps = createFakeClock();
    const start = sleeps.now();
    const clock = { ...sleeps, now: () => start + Math.floor(elapsed), monotonic: () => elapsed };
    const process: Omit<Process, 'stage'> = {
      sleeps,
      dead: false,
      died: Promise.withResolvers(),
      paused: null,
      lag: 0,
    };
    const gate = async () => {
      while (process.paused) await process.paused.promise;
      if (process.dead) await forever();
    };
    const fail = (what: string) => {
      if (!faults || random() >= options.failures / 2) return;
      stats.failures++;
      throw storeAway(what);
    };
    const tapped = tapDriver(driver, async (op, phase) => {
      await gate();
      fail(`${op}, ${phase} it was done`);
    });
    const model = modelOf(options.supervised ? unruly(answer(clock)) : answer(clock));
    const remembering = createFakeSessions({
      memory: memories[machine] ?? newSessionMemory(),
      answer: (request, signal) => model.stream(request, { signal }),
      rewind: options.sessions?.rewind ?? true,
      home: `machine ${machine}`,
      isAlive: () => !process.dead,
    });
    const tool = ledgerTool(clock, gate);
    const stage = await openStage({
      driver: tapped,
      clock,
      tools: [tool],
      agents: AGENTS.map((id) => ({
        id,
        model: options.sessions && id === REMEMBERS ? remembering : model,
        tools: ['note', 'handoff', ...(options.supervised ? ['todo', 'no_response'] : [])],
      })),
      limits: {
        leaseMs: LEASE_MS,
        sweepMs: SWEEP_MS,
        soleOwner: options.processes === 1 && !kills,
        maxHops: 3,
      },
      random,
    });
    return Object.assign(process, { stage });
  }

  function ledgerTool(clock: FakeClock, gate: () => Promise<void>): Tool {
    return defineTool({
      name: 'note',
      description: 'writes into a book, not twice',
      schema: z.object({}),
      async run(_, { effect }) {
        await gate();
        ledger.set(effect, (ledger.get(effect) ?? 0) + 1);
        stats.calls++;
        await clock.sleep(random() * 20);
        await gate();
        return `noted ${effect}`;
      },
    });
  }

  function alive(): Process {
    return processes[Math.floor(random() * processes.length)] as Process;
  }

  /**
   * Posts until the message is acknowledged as stored; after a crash or failure it is posted again with the same id.
   */
  async function post(id: string, conversation: string, to: string[]): Promise<void> {
    for (;;) {
      const { stage, died } = alive();
      const message = {
        author: ANA,
        content: `message ${id}`,
        to,
        id: id as EventId,
        ...busyOf(id, options),
      };
      const sent = stage.troupe.send(conversation, message).then(
        () => 'stored',
        (error: unknown) => {
          if (error instanceof TroupeError && error.code === 'store_unavailable') return 'unknown';
          throw error;
        },
      );
      if ((await Promise.race([sent, died.promise])) === 'stored') break;
      await turns();
    }
    acked.add(`${conversation}/${id}`);
  }

  async function abortSome(): Promise<void> {
    const actors = await driver.listActors({ tenant: 'default', conversation: pick(CONVERSATIONS, random) });
    const turn = actors.find((actor) => actor.turn !== null)?.turn as TurnId | undefined;
    if (turn === undefined) return;
    const { stage, died } = alive();
    const done = stage.troupe.command({ command: 'abort', turn }, ANA).then(
      () => {
        stats.aborts++;
        cancelled.push(turn);
      },
      () => undefined, // refused or unknown: nothing was acknowledged
    );
    client(Promise.race([done, died.promise]));
  }

  function client(work: Promise<unknown>): void {
    const tracked = work.finally(() => clients.delete(tracked));
    clients.add(tracked);
  }

  async function park(command: 'pause' | 'resume'): Promise<void> {
    const conversation = pick(CONVERSATIONS, random) as ConversationId;
    const agent = pick(AGENTS, random) as AgentId;
    const { stage, died } = alive();
    const done = stage.troupe.command({ command, conversation, agent }, ANA).catch(() => undefined);
    client(Promise.race([done, died.promise]));
  }

  async function pass(ms: number): Promise<void> {
    elapsed += ms;
    for (const process of processes) {
      if (process.paused) process.lag += ms;
      else await process.sleeps.advance(ms);
    }
  }

  async function kill(): Promise<void> {
    const at = Math.floor(random() * processes.length);
    const process = processes[at] as Process;
    process.dead = true;
    process.paused?.resolve();
    process.paused = null;
    process.died.resolve('died');
    stats.kills++;
    processes[at] = await boot(at);
  }

  async function wakeUp(process: Process): Promise<void> {
    const { paused, lag } = process;
    process.paused = null;
    process.lag = 0;
    paused?.resolve();
    await turns(Math.floor(random() * 4));
    await process.sleeps.advance(lag);
  }

  async function pauseOrWake(): Promise<void> {
    const process = alive();
    if (process.paused) return wakeUp(process);
    process.paused = Promise.withResolvers();
    stats.pauses++;
    if (random() < 0.5) await pass(LEASE_MS * (1 + random() * 2));
  }

  return {
    stats,
    async act() {
      const dice = random();
      if (dice < 0.25) {
        const id = `m${stats.posts++}`;
        const to = AGENTS.filter(() => random() < 0.5);
        const conversation = pick(CONVERSATIONS, random);
        client(post(id, conversation, to));
        if (random() < 0.2) client(post(id, conversation, to));
      } else if (dice < 0.55) await turns(1 + Math.floor(random() * 12));
      else if (dice < 0.8) await pass(random() * 60);
      else if (dice < 0.84) await pass(random() * LEASE_MS);
      else if (dice < 0.88) await abortSome();
      else if (dice < 0.92) await park(random() < 0.4 ? 'pause' : 'resume');
      else if (dice < 0.95 && kills) await kill();
      else if (pauses) await pauseOrWake();
    },

    async settle() {
      faults = false;
      for (const process of processes) if (process.paused) await wakeUp(process);
      while (clients.size > 0) {
        await turns();
        await pass(5);
      }
      // Writes that a killed process had handed to the store still take effect.
      await turns(5);
      for (const conversation of CONVERSATIONS) {
        for (const agent of AGENTS) await unpark(driver, conversation, agent);
      }
      const from = elapsed;
      while (!(await isQuiet(driver, processes, createFakeClock().now() + elapsed))) {
        if (elapsed - from > PATIENCE_MS) break;
        await pass(100);
      }
      return elapsed - from;
    },

    async violations() {
      const found: string[] = [];
      for (const conversation of CONVERSATIONS) {
        const events = await allEvents(store, conversation);
        const crew = await checkStore(store, conversation, { cancelled });
        found.push(...crew.map((violation) => textOf(violation)));
        found.push(...coverProblems(events).map((problem) => `F9 ${conversation}: ${problem}`));
        stats.steered += events.filter(({ kind }) => kind === 'turn.steered').length;
        for (const stage of options.steers ? processes.slice(0, 1).map((each) => each.stage) : [])
          found.push(...(await unverified(stage, conversation)).map((prompt) => `P1 ${prompt}`));
        const ids = new Set<string>(events.map(({ id }) => id as EventId));
        for (const key of acked) {
          const [where, id] = key.split('/') as [string, string];
          if (where === conversation && !ids.has(id))
            found.push(`acknowledged post ${key} is not in the log`);
        }
        const calls = memories.flatMap(({ seen }) => seen);
        found.push(...checkSessions(events, REMEMBERS, calls));
        for (const event of events) {
          if (event.id.endsWith(':end')) stats.turns++;
          if (event.kind === 'injection') stats.corrections++;
          if (event.kind !== 'tool.result' || event.body.name !== 'note') continue;
          const effect = event.id.replace(':result:', '/');
          const runs = ledger.get(effect) ?? 0;
          if (event.body.outcome === 'done' && runs !== 1)
            found.push(`${effect} is done and ran ${runs} times`);
        }
      }
      for (const [effect, runs] of ledger) if (runs > 1) found.push(`${effect} ran ${runs} times`);
      return found;
    },
  };
}

async function unpark(driver: StoreDriver, conversation: string, agent: string): Promise<void> {
  const key = { ...logOf(conversation), agent };
  if ((await driver.readActor(key))?.parked === 'paused') await driver.park(key, null);
}

async function isQuiet(driver: StoreDriver, processes: readonly Process[], clock: number): Promise<boolean> {
  const due = await driver.due({ now: Number.MAX_SAFE_INTEGER, clock, since: 0, limit: 1 });
  if (due.length > 0) return false;
  const depths = await Promise.all(processes.map(({ stage }) => stage.troupe.queues()));
  return depths.every(({ waiting, active, delayed }) => waiting + active + delayed === 0);
}

/** The answer is a function of the request, so that every process answers alike. */
function answer(clock: FakeClock): Parameters<typeof modelOf>[0] {
  return async function* ({ messages, trace }) {
    const key = `${trace.turn}/${trace.step}/${messages.length}`;
    const dice = hashOf(key);
    const events =
      trace.call === 1 && dice % 11 === 0
        ? breaks('provider_overloaded', 'half')
        : trace.step < 3 && dice % 3 === 0
          ? asks(['note', {}], ['note', {}])
          : dice % 7 === 1
            ? asks(['handoff', { to: AGENTS[dice % 2], goal: 'go on' }])
            : says(`answer of ${trace.agent} `, `in ${trace.turn}/${trace.step}`);
    for (const event of events) {
      if (event.type === 'text' || event.type === 'done') await clock.sleep(dice % 40);
      yield event;
    }
  };
}

/** The policy is a function of the id, so that a repeated post has the same one. */
function busyOf(id: string, { steers }: WorldOptions): { whileBusy?: BusyPolicy } {
  const whileBusy = BUSY[hashOf(id) % 5];
  return steers && whileBusy ? { whileBusy } : {};
}

const BUSY: readonly BusyPolicy[] = ['steer', 'steer', 'interrupt'];

/** A model that writes todo lists, forgets them, and gives empty answers. */
function unruly(tame: Parameters<typeof modelOf>[0]): Parameters<typeof modelOf>[0] {
  return async function* (request, signal) {
    const { trace, messages } = request;
    const dice = hashOf(`unruly ${trace.turn}/${trace.step}/${messages.length}`) % 8;
    const list = (status: string) => asks(['todo', { items: [{ text: 'sail', status }] }]);
    if (dice === 0) yield* says(' ');
    else if (dice === 1) yield* list('pending');
    else if (dice === 2) yield* list('done');
    else if (dice === 3) yield* asks(['no_response', {}]);
    else yield* tame(request, signal);
  };
}

function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)] as T;
}

function textOf({ invariant, conversation, problem }: Violation): string {
  return `${invariant} ${conversation}: ${problem}`;
}
