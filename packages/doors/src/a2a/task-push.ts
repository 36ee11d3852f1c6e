import * as z from 'zod';
import {
  Address,
  type IntegrationBase,
  type KeyValue,
  parseGiven,
  TroupeError,
  updateEntry,
} from '../troupe.ts';

/** Tasks that are open: what has ended needs none. */
const MOST_PER_TENANT = 200;
/** One key leaves room for others. */
const MOST_PER_KEY = 100;
const MOST_PER_TASK = 5;

/** A value of a header. */
const Secret = z
  .string()
  .max(4_000)
  .regex(/^[\x20-\x7e]*$/, 'it may have visible ASCII characters only');

export const TaskPush = z.strictObject({
  /** Unique within the task and its owner. */
  id: z.string().min(1).max(128),
  owner: z.string(),
  agent: z.string(),
  conversation: z.string(),
  seq: z.int().positive(),
  event: z.string(),
  at: z.number(),
  url: Address,
  token: Secret.optional(),
  authentication: z
    .strictObject({
      scheme: z
        .string()
        .max(100)
        .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'it is no name of a scheme'),
      credentials: Secret.optional(),
    })
    .optional(),
  createdAt: z.number(),
  /** Digest of the last state that the receiver has taken. */
  told: z.string().optional(),
});
/** Where the states of a task of A2A are sent. */
export interface TaskPush {
  /** Unique within the task and its owner. */
  id: string;
  /** Id of the caller that made it, and may see and delete it. */
  owner: string;
  /** Id of the agent that was asked. */
  agent: string;
  /** The conversation of the task. */
  conversation: string;
  /** Seq of the message that began the task. */
  seq: number;
  /** Id of that message. */
  event: string;
  /** Time of that message, ms. */
  at: number;
  /** The receiver. */
  url: string;
  /** Sent to the receiver in `X-A2A-Notification-Token`. */
  token?: string | undefined;
  /** Sent to the receiver in `Authorization`. */
  authentication?:
    | {
        /** The scheme, such as `Bearer`. */
        scheme: string;
        /** What follows it. */
        credentials?: string | undefined;
      }
    | undefined;
  /** When it was stored, ms. */
  createdAt: number;
  /** Digest of the last state that the receiver has taken. */
  told?: string | undefined;
}

/** A task whose states may be sent, and the caller whose receivers are meant. */
export type PushedTask = Pick<TaskPush, 'owner' | 'conversation' | 'seq' | 'event' | 'at'>;

/** The receivers of the states of one tenant's tasks. */
export interface TaskPushRepository {
  /** Throws what `add` would throw now. */
  check(receiver: Pick<TaskPush, 'owner' | 'url' | 'token' | 'authentication'>): Promise<void>;
  /**
   * Stores one, in place of its owner's with its id. Throws `event_invalid`, `address_refused`, and `command_refused` if the task,
   * the owner or the tenant has its maximum.
   */
  add(push: Omit<TaskPush, 'createdAt' | 'told'>): Promise<void>;
  /** Those of a task and an owner, oldest first. */
  list(task: PushedTask): Promise<TaskPush[]>;
  /** Removes one for good. Returns whether there was one. */
  remove(task: PushedTask, id: string): Promise<boolean>;
}

interface RepositoryParts extends Pick<IntegrationBase, 'clock' | 'outgoing'> {
  keyValue: KeyValue;
  /** Called after each change. */
  onChange: () => void;
}

/** Owns the entry `a2a-push` of a tenant. `createTaskPushes` delivers. */
export function createTaskPushRepository({
  keyValue,
  clock,
  outgoing,
  onChange,
}: RepositoryParts): TaskPushRepository {
  const Receiver = TaskPush.pick({ url: true, token: true, authentication: true });
  return {
    async check({ owner, ...receiver }) {
      outgoing.check(parseGiven(Receiver, receiver, 'the notification').url);
      checkRooms(await readTaskPushes(keyValue), owner);
    },
    async add(given) {
      const push = parseGiven(TaskPush, { ...given, createdAt: clock.now() }, 'the notification');
      outgoing.check(push.url);
      await changeTaskPushes(keyValue, (all) => {
        const others = all.filter((each) => !(isOfTask(each, push) && each.id === push.id));
        checkRooms(others, push.owner);
        checkRoom(others.filter((each) => isOfTask(each, push)).length, MOST_PER_TASK, 'this task');
        return [...others, push];
      });
      onChange();
    },
    list: async (task) => (await readTaskPushes(keyValue)).filter((each) => isOfTask(each, task)),
    async remove(task, id) {
      let isFound = false;
      await changeTaskPushes(keyValue, (all) => {
        const rest = all.filter((each) => !(isOfTask(each, task) && each.id === id));
        isFound = rest.length < all.length;
        return isFound ? rest : null;
      });
      onChange();
      return isFound;
    },
  };
}

function checkRooms(all: readonly TaskPush[], owner: string): void {
  checkRoom(all.length, MOST_PER_TENANT, 'this tenant');
  checkRoom(all.filter((each) => each.owner === owner).length, MOST_PER_KEY, 'this key');
}

function checkRoom(count: number, most: number, whose: string): void {
  if (count < most) return;
  const message = `${whose} has ${count} notifications of open tasks and may have ${most}: delete one`;
  throw new TroupeError('command_refused', message, { limit: most });
}

function isOfTask(push: TaskPush, { owner, conversation, seq, event, at }: PushedTask): boolean {
  const isTask = push.conversation === conversation && push.seq === seq && push.event === event;
  return isTask && push.at === at && push.owner === owner;
}

export function isSamePush(one: TaskPush, other: TaskPush): boolean {
  return isOfTask(one, other) && one.id === other.id && one.createdAt === other.createdAt;
}

type Entries = Pick<KeyValue, 'get' | 'compareAndSet'>;

/** The entry of all of a tenant: they are few. */
const KEY = 'a2a-push';
const TaskPushes = z.array(TaskPush);

/** Oldest first. */
export async function readTaskPushes(keyValue: Pick<KeyValue, 'get'>): Promise<TaskPush[]> {
  return parse(await keyValue.get(KEY));
}

/** `apply` may be called several times. It returns null to change nothing. */
export function changeTaskPushes(
  keyValue: Entries,
  apply: (pushes: TaskPush[]) => TaskPush[] | null,
): Promise<TaskPush[]> {
  return updateEntry(keyValue, KEY, parse, apply);
}

/** Throws for an unreadable entry: treated as empty, the next change would delete all. */
function parse(text: string | null): TaskPush[] {
  return text === null ? [] : TaskPushes.parse(JSON.parse(text));
}
