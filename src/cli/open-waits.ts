import { TroupeError } from '../errors.ts';
import { isTaskEnd } from '../events/index.ts';
import type { ActorStatus, TaskInfo } from '../troupe.ts';
import type { Client } from './client.ts';
import { clip, printable } from './output.ts';

/** A task that nobody works on: it waits for people, or for somebody who takes no turns. */
export interface Wait {
  /** Where it stands. */
  conversation: string;
  task: TaskInfo;
}

export interface Waits {
  /** Whether any agent works on what is waited for. */
  atWork: boolean;
  waits: Wait[];
}

/** Tasks within tasks that are followed; the limit of a troupe may be raised, and a log may be anything. */
const MOST_DEPTH = 16;

/** What the agents of a conversation wait for now, down to the tasks that are at the bottom of it. */
export async function openWaits(client: Client, conversation: string): Promise<Waits> {
  const seen = new Set<string>();
  return waitsIn(conversation, 0);

  async function waitsIn(at: string, depth: number): Promise<Waits> {
    seen.add(at);
    const { tasks } = await tasksOf(client, at);
    const found: Waits = { atWork: false, waits: [] };
    for (const task of tasks) {
      const { thread } = task;
      const isBelow = thread !== undefined && !seen.has(thread) && depth < MOST_DEPTH;
      const below = isBelow ? await waitsIn(thread, depth + 1) : { atWork: false, waits: [] };
      const atWork = below.atWork || (isBelow && (await isAtWork(client, thread, task.assignee)));
      found.atWork ||= atWork;
      if (below.waits.length > 0) found.waits.push(...below.waits);
      else if (!atWork) found.waits.push({ conversation: at, task });
    }
    return found;
  }
}

async function tasksOf(client: Client, conversation: string): Promise<{ tasks: TaskInfo[] }> {
  try {
    return await client.tasks(conversation, { open: true });
  } catch (error) {
    // Opened, and its first event is still on its way.
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return { tasks: [] };
    throw error;
  }
}

/** Before its first turn an agent has no record, but a wake. */
async function isAtWork(client: Client, thread: string, agent: string | undefined): Promise<boolean> {
  const actors = await client.actors(thread).catch((error: unknown) => {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return [];
    throw error;
  });
  const actor = actors.find((each) => each.agent === agent);
  if (!actor) return true;
  if (actor.status === 'paused' || actor.status === 'failed' || actor.status === 'retired') return false;
  return actor.turn !== null || (await isAddressed(client, thread, actor));
}

/** Whether something is on its way to it. The end of a task may wait for others. */
async function isAddressed(
  client: Client,
  conversation: string,
  { agent, lastProcessedIndex }: Pick<ActorStatus, 'agent' | 'lastProcessedIndex'>,
): Promise<boolean> {
  const head = await client.head(conversation);
  if (lastProcessedIndex >= head) return false;
  const stop = new AbortController();
  try {
    for await (const frame of client.follow(conversation, lastProcessedIndex, stop.signal)) {
      if (frame.type !== 'event') continue;
      if (frame.event.to.includes(agent) && !isTaskEnd(frame.event)) return true;
      if (frame.event.seq >= head) return false;
    }
    return false;
  } finally {
    stop.abort();
  }
}

const MOST_TEXT = 200;

/** What is waited for, and the command that helps. */
export function waitText({ conversation, task }: Wait): string {
  const { id, kind, owner, assignee, text = '', tool = '', args = '', choices, by = [] } = task;
  const only = by.length > 0 ? ` (of ${printable(by.join(', '))})` : '';
  switch (kind) {
    case 'question': {
      const offered = choices ? ` [${printable(choices.join(' / '))}]` : '';
      return `@${owner} asks${only}: ${clip(text, MOST_TEXT)}${offered}; answer with: troupe answer ${conversation} ${id} TEXT`;
    }
    case 'approval':
      return `@${owner} asks to call${only} ${clip(`${tool} ${args}`, MOST_TEXT)}; decide with: troupe approve ${conversation} ${id}, or: troupe deny ${conversation} ${id}`;
    case 'delegation':
      return `@${owner} waits for @${assignee}: ${clip(text, MOST_TEXT)}; see: troupe tasks ${conversation} --tree, or call it off with: troupe cancel ${conversation} ${id}`;
  }
}
