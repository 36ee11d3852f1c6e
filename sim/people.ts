import { answerQuestion, decideApproval, cancelTaskBy } from '../src/actors/tasks/task-commands.ts';
import { TroupeError } from '../src/base/errors.ts';
import { type Author, type ConversationId, DEFAULT_TENANT } from '../src/events/index.ts';
import type { AgentRuntime } from './process.ts';
import { between } from './random.ts';
import type { OpenTask } from './task-watch.ts';
import { LEASE_MS, type World } from './world.ts';

export interface PeopleParts {
  world: World;
  insist: <T>(ask: (member: AgentRuntime) => Promise<T>) => Promise<T | null>;
  wait: (ms: number) => Promise<void>;
}

const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const BOB: Author = { kind: 'user', id: 'u2', name: 'Bob' };
const LOOK_EVERY_MS = 400;
/** Shares of tasks: never answered (the deadline ends them), answered by two people at once, cancelled. */
const UNANSWERED = 0.15;
const TWICE = 0.3;
const CANCELLED = 0.08;

/** People with open tasks. They answer most, answer some twice in different ways, and some never. */
export function dealWithTasks({ world, insist, wait }: PeopleParts): void {
  const { random } = world;
  const seen = new Set<string>();

  async function deal(open: OpenTask): Promise<void> {
    const { kind } = open.task;
    const isLight = world.mode === 'light';
    if (kind === 'delegation') {
      if (random() < CANCELLED) await after(LEASE_MS, () => end(open, ANA));
      return;
    }
    // Without sweeps, no deadline is noticed.
    if (random() < UNANSWERED && !isLight) return;
    const others = random() < TWICE ? [after(LEASE_MS / 4, () => end(open, BOB))] : [];
    await Promise.all([after(LEASE_MS / 4, () => end(open, ANA)), ...others]);
  }

  async function after(ms: number, work: () => Promise<unknown>): Promise<void> {
    await wait(between(random, 0, ms));
    await work();
  }

  async function end({ conversation, task }: OpenTask, by: Author): Promise<void> {
    const log = { tenant: DEFAULT_TENANT, conversation: conversation as ConversationId };
    const approved = random() < 0.7;
    const ended = await insist(async ({ deps }) => {
      try {
        if (task.kind === 'question')
          return await answerQuestion(deps, log, { question: task.id, content: `says ${by.name}` }, by);
        if (task.kind === 'approval')
          return await decideApproval(deps, log, { request: task.id, approved }, by);
        const end = await cancelTaskBy(deps, log, { task: task.id }, by);
        world.cancelledTasks.push({ task: task.id, after: world.asked.length });
        return end;
      } catch (error) {
        // Another person was faster.
        if (error instanceof TroupeError && error.code === 'command_refused') return null;
        throw error;
      }
    });
    if (ended) world.figures.decisions += 1;
  }

  async function look(): Promise<void> {
    for (;;) {
      for (const open of world.tasks.open()) {
        if (seen.has(open.task.id)) continue;
        seen.add(open.task.id);
        void deal(open);
      }
      await wait(LOOK_EVERY_MS);
    }
  }
  void look();
}
