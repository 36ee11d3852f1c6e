import { TroupeError } from '../src/base/errors.ts';
import {
  type ActorAddress,
  type AgentId,
  type Author,
  type ConversationId,
  DEFAULT_TENANT,
  type EventDraft,
  type EventId,
  type TurnId,
} from '../src/events/index.ts';
import { AGENTS, LATE_AGENT } from './company.ts';
import { dealWithTasks } from './people.ts';
import type { AgentRuntime } from './process.ts';
import { below, between, pick } from './random.ts';
import { STEP_MS } from './scheduler.ts';
import { LEASE_MS, type World } from './world.ts';

/**
 * Clients outside of the processes. They repeat an unacknowledged request with the same id, to another process, too,
 * and even after a long silence. Every answer that they received is binding: `acknowledged` messages must be kept.
 */
export interface Clients {
  /** Acknowledged messages, by conversation and event id. */
  readonly posted: Map<string, EventDraft>;
  readonly cancelled: TurnId[];
  /** Turns that a client asked to stop, whatever the answer was. */
  readonly asked: Set<string>;
  readonly problems: string[];
  /** True when every request was answered. */
  isDone(): boolean;
  /** Resumes every actor that a client paused. */
  resumeAll(): void;
  /** Resumes actors that failed or are still paused, as an operator would. False if there are none. */
  resumeParked(): boolean;
}

const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const CONVERSATIONS = ['c1', 'c2', 'c3'] as const;
/** Number of steps over which the messages are spread. */
const SPREAD_STEPS = 350;
/** Time without an answer after which a client asks again. */
const IMPATIENCE_MS = LEASE_MS / 2;

/** The same for every repetition of a message. */
function busyOf(id: string): Pick<EventDraft, 'whileBusy'> {
  const policies = [undefined, undefined, 'steer', 'steer', 'interrupt'] as const;
  const whileBusy = policies[Number(id.slice(1)) % policies.length];
  return whileBusy ? { whileBusy } : {};
}

export function openClients(world: World): Clients {
  const { random, scheduler, figures } = world;
  const posted = new Map<string, EventDraft>();
  const cancelled: TurnId[] = [];
  const asked = new Set<string>();
  const problems: string[] = [];
  const paused = new Set<string>();
  const conversations = CONVERSATIONS.slice(0, 2 + below(random, 2));
  let running = 0;

  function later(ms: number, work: () => Promise<void>): void {
    running += 1;
    scheduler.sleep(null, 'client', ms, () => void work().finally(() => (running -= 1)));
  }

  function wait(ms: number): Promise<void> {
    return new Promise((resolve) => scheduler.sleep(null, 'client waits', ms, resolve));
  }

  /** Asks until a process answers. When a process dies, fails or is silent, any other one is asked. */
  async function insist<T>(ask: (member: AgentRuntime) => Promise<T>): Promise<T | null> {
    for (;;) {
      const member = world.anyone();
      if (!member) {
        await wait(LEASE_MS / 10);
        continue;
      }
      let silence = () => {};
      const silent = new Promise<'silent'>((resolve) => {
        const sleeper = scheduler.sleep(null, 'impatience', IMPATIENCE_MS, () => resolve('silent'));
        silence = () => scheduler.cancel(sleeper);
      });
      const answered = ask(member).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      const answer = await Promise.race([answered, member.died, silent]);
      silence();
      if (typeof answer === 'object' && 'value' in answer) return answer.value;
      if (typeof answer === 'object' && !isRetryable(answer.error)) {
        problems.push(`a client got: ${String(answer.error)}`);
        return null;
      }
      await wait(between(random, 0, 5 * STEP_MS));
    }
  }

  function isRetryable(error: unknown): boolean {
    return error instanceof TroupeError && error.policy === 'retry';
  }

  async function post(id: string, conversation: string, to: AgentId[]): Promise<void> {
    const log = { tenant: DEFAULT_TENANT, conversation: conversation as ConversationId };
    const body = { content: `message ${id}` };
    const draft: EventDraft = { id: id as EventId, author: ANA, to, kind: 'message', body, ...busyOf(id) };
    const appended = await insist((member) => member.deps.log.append(log, [draft]));
    if (appended) posted.set(`${conversation}/${id}`, draft);
  }

  function addressees(late: boolean): AgentId[] {
    const known = AGENTS.filter((agent) => late || agent !== LATE_AGENT);
    const first = pick(random, known);
    const second = pick(random, known);
    // Some messages have no addressee, some have two.
    const to = random() < 0.1 ? [] : random() < 0.15 ? [...new Set([first, second])] : [first];
    return to as string[] as AgentId[];
  }

  async function cancelSome(): Promise<void> {
    const busy = [...world.data.actors.values()].filter(({ turn }) => turn !== null);
    if (busy.length === 0) return;
    const turn = pick(random, busy).turn as TurnId;
    asked.add(turn);
    const running = await insist((member) => member.engine.abort(DEFAULT_TENANT, turn));
    if (!running) return;
    figures.cancels += 1;
    cancelled.push(turn);
  }

  async function pauseSome(): Promise<void> {
    const conversation = pick(random, conversations) as ConversationId;
    const address = {
      tenant: DEFAULT_TENANT,
      conversation,
      agent: pick(random, AGENTS) as string as AgentId,
    };
    paused.add(JSON.stringify(address));
    await insist((member) => member.engine.pause(address));
    await wait(between(random, 0, LEASE_MS));
    if (random() < 0.5) await insist((member) => member.engine.resume(address));
  }

  const posts = 8 + Math.floor(random() * random() * 5);
  const spread = SPREAD_STEPS * STEP_MS;
  for (let index = 0; index < posts; index++) {
    const late = index >= posts / 2;
    const to = addressees(late);
    const conversation = pick(random, conversations);
    // Bursts cause races.
    const at = random() < 0.4 ? Math.floor(random() * 4) * (spread / 4) : random() * spread;
    figures.posts += 1;
    later(at, () => post(`m${index}`, conversation, to));
    if (random() < 0.2) later(at + between(random, 0, LEASE_MS), () => post(`m${index}`, conversation, to));
  }
  dealWithTasks({ world, insist, wait });
  for (let times = below(random, 4); times > 0; times--) later(random() * spread * 1.5, cancelSome);
  if (random() < 0.3) later(random() * spread, pauseSome);

  const beingResumed = new Set<string>();

  return {
    posted,
    cancelled,
    asked,
    problems,
    isDone: () => running === 0,
    resumeParked() {
      // A process that stood still may carry out a pause after the resumption that followed it.
      const parked = [...world.data.actors.values()]
        .filter((row) => row.tenant !== '-' && row.parked !== null)
        .map(({ tenant, conversation, agent }) => ({ tenant, conversation, agent }) as ActorAddress);
      for (const address of parked) {
        const { tenant, conversation, agent } = address;
        const key = `${tenant}/${conversation}/${agent}`;
        if (beingResumed.has(key)) continue;
        beingResumed.add(key);
        later(0, async () => {
          await insist((member) => member.engine.resume(address));
          beingResumed.delete(key);
        });
      }
      return parked.length > 0;
    },
    resumeAll() {
      for (const text of paused) {
        const address = JSON.parse(text) as ActorAddress;
        later(0, async () => void (await insist((member) => member.engine.resume(address))));
      }
    },
  };
}
