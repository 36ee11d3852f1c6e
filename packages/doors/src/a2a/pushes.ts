import { createHash } from 'node:crypto';
import * as z from 'zod';
import { a2aError, type PushConfig, type PushRequest, taskId, type StatusUpdate } from './protocol.ts';
import { findTask, readTask, type TaskLog } from './task.ts';
import type { Caller } from '../http.ts';
import {
  type Event,
  type Integration,
  type IntegrationBase,
  type IntegrationHost,
  isGranted,
  leavePeriod,
  pauseAfter,
  type PostAnswer,
  RetryAfter,
  Signal,
  takeLeft,
  TroupeError,
  Address,
  type KeyValue,
  parseGiven,
  updateEntry,
} from '../troupe.ts';

type Given = Omit<PushConfig, 'taskId'>;

/** Opened only when needed, because most requests concern no notifications. */
export type Repositories = Pick<TaskPushes, 'repositoryOf'>;

/** The caller who asks an agent. A caller's settings are shown to no other caller. */
interface Asker extends Pick<Caller, 'troupe' | 'principal'> {
  agent: string;
  pushes: Repositories;
}

/** Throws what `addPush` would throw, before a task is begun. */
export async function checkPush(
  { pushes, troupe, principal }: Omit<Asker, 'agent'>,
  given: Given,
): Promise<void> {
  await pushes.repositoryOf(troupe.tenant).check({ owner: principal.id, ...receiverOf(given) });
}

/** Stores a receiver of the task's states. The same URL without an id is stored once, however often it is given. */
export async function addPush(asker: Asker, sent: Event, given: Given): Promise<object> {
  const receiver = receiverOf(given);
  const id = given.id || createHash('sha256').update(receiver.url).digest('hex').slice(0, 24);
  const { agent } = asker;
  await repositoryOf(asker).add({ id, agent, ...markOf(asker, sent), ...receiver });
  return { id, taskId: taskId(sent), ...receiver };
}

export async function listPushes(asker: Asker, task: string): Promise<object[]> {
  const sent = await findTask(asker, task);
  const pushes = await repositoryOf(asker).list(markOf(asker, sent));
  // Secrets are for the receiver, and are never shown again.
  return pushes.map(({ id, url, authentication }) => ({
    id,
    taskId: task,
    url,
    ...(authentication && { authentication: { scheme: authentication.scheme } }),
  }));
}

export async function readPush(asker: Asker, { taskId: task, id }: PushRequest): Promise<object> {
  const pushes = await listPushes(asker, task);
  const push = pushes.find((each) => 'id' in each && each.id === id);
  if (!push)
    throw a2aError('TASK_NOT_FOUND', `the task has no notification "${id.slice(0, 128).toWellFormed()}"`);
  return push;
}

/** Idempotent, as the protocol requires: the receiver may already be gone. */
export async function removePush(asker: Asker, { taskId: task, id }: PushRequest): Promise<void> {
  const sent = await findTask(asker, task);
  await repositoryOf(asker).remove(markOf(asker, sent), id);
}

function repositoryOf({ pushes, troupe }: Asker): TaskPushRepository {
  return pushes.repositoryOf(troupe.tenant);
}

function markOf({ principal }: Asker, { conversation, seq, id, at }: Event): PushedTask {
  return { owner: principal.id, conversation, seq, event: id, at };
}

/** Clients send empty texts instead of leaving fields out. */
function receiverOf({ url, token, authentication }: Given) {
  const { scheme, credentials } = authentication ?? {};
  return {
    url,
    ...(token && { token }),
    ...(scheme && { authentication: { scheme, ...(credentials && { credentials }) } }),
  };
}

interface TaskPushes extends Integration {
  /** The receivers for a tenant's tasks. Changes by other processes are noticed within 20 s. */
  repositoryOf(tenant: string): TaskPushRepository;
}

const LOOK_MS = 20_000;

/** Sends the states of A2A tasks to their receivers, for all tenants that have any. */
export function createTaskPushes(): TaskPushes {
  const running = new Map<string, TenantPushes>();
  const closing = new AbortController();
  let base: IntegrationBase | null = null;
  let host: IntegrationHost | null = null;
  let run: Promise<void> = Promise.resolve();
  /** Reads run one after another, so that an older list cannot replace a newer one. */
  let looks: Promise<void> = Promise.resolve();

  async function look({ keyValueOf, onWarning }: IntegrationHost, tenant: string): Promise<void> {
    try {
      const pushes = await readTaskPushes(keyValueOf(tenant));
      const known = running.get(tenant);
      if (closing.signal.aborted || !host || (!known && pushes.length === 0)) return;
      const tenantPushes = known ?? new TenantPushes(tenant, host);
      running.set(tenant, tenantPushes);
      tenantPushes.update(pushes);
    } catch (error) {
      onWarning(error, `notifications of ${tenant}`);
    }
  }

  async function lookAround(at: IntegrationHost): Promise<void> {
    while (!closing.signal.aborted) {
      const tenants = await at.tenants().catch((error: unknown) => {
        at.onWarning(error, 'notifications: the list of tenants');
        return [];
      });
      for (const tenant of tenants) await (looks = looks.then(() => look(at, tenant)));
      await at.clock.sleep(LOOK_MS, closing.signal, 'upkeep');
    }
  }

  function changed(tenant: string): void {
    const at = host;
    if (at && !closing.signal.aborted) looks = looks.then(() => look(at, tenant));
  }

  return {
    name: 'a2a-push',
    attach(given) {
      base = given;
    },
    repositoryOf(tenant) {
      if (!base) throw new Error('the door is not open in this troupe');
      const { clock, outgoing, keyValueOf } = base;
      const keyValue = keyValueOf(tenant);
      return createTaskPushRepository({ keyValue, clock, outgoing, onChange: () => changed(tenant) });
    },
    async start(given) {
      host = given;
      run = lookAround(given);
    },
    async close() {
      closing.abort();
      await run;
      await looks;
      await Promise.all([...running.values()].map((each) => each.close()));
    },
  };
}

interface Known {
  push: TaskPush;
  dueAt: number;
  isUnderWay: boolean;
  failures: number;
  failingSince: number;
}

const CLAIM = 'a2a-push';
/** Length of a claim, ms: one process delivers for this long. */
const PERIOD_MS = 30_000;
/** No delivery starts within this time before the end of a claim, ms. */
const MARGIN_MS = 200;
const STAND_BY_MS = 10_000;
/** Time between checks without a notice, ms, because notices of events may be lost. */
const CHECK_MS = 60_000;
const STORE_PAUSE_MS = 5_000;
/** Most deliveries of one tenant at a time. */
const CONCURRENCY = 4;
const GRACE_MS = 3_000;

/**
 * Sends the states of one tenant's tasks to their receivers.
 *  T1  After a notice of an event, and once a minute, the task is read. If its state differs from what its receiver
 *      accepted last, the state is sent. After the receiver has answered, a digest of the state is stored. So each state
 *      that lasts is sent at least once, across crashes; a state that has already passed is not sent.
 *  T2  A receiver is removed after it accepted the end of the task, after it answered 410, after the deletion of the
 *      conversation, and after `disableAfterMs` of failures in this process. After any other answer it is tried again
 *      after a pause.
 *  T3  A slow receiver delays no other, as long as a tenant has fewer than four slow ones.
 *  T4  One process at a time delivers, by a claim. Two at once may deliver twice, but do no other harm.
 */
class TenantPushes {
  readonly #tenant: string;
  readonly #host: IntegrationHost;
  readonly #known = new Map<string, Known>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #signal = new Signal();
  readonly #closing = new AbortController();
  readonly #abort = new AbortController();
  readonly #unwatch: () => void;
  readonly #run: Promise<void>;
  #until = 0;

  constructor(tenant: string, host: IntegrationHost) {
    this.#tenant = tenant;
    this.#host = host;
    this.#unwatch = host.troupeOf(tenant).watch((notice) => {
      if (notice.type === 'event') this.#noteEvent(notice.event.conversation);
    });
    this.#run = this.#work();
  }

  /** Replaces the receivers by those that are stored now. */
  update(pushes: readonly TaskPush[]): void {
    const stored = new Set(pushes.map(keyOf));
    for (const key of this.#known.keys()) if (!stored.has(key)) this.#known.delete(key);
    for (const push of pushes) {
      const known = this.#known.get(keyOf(push));
      if (known && isSamePush(known.push, push)) continue;
      const fresh = { push, dueAt: 0, isUnderWay: false, failures: 0, failingSince: 0 };
      this.#known.set(keyOf(push), fresh);
    }
    this.#signal.raise();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#unwatch();
    this.#signal.raise();
    await this.#run;
    const all = Promise.all(this.#underWay);
    const over = new AbortController();
    await Promise.race([all.then(() => over.abort()), this.#host.clock.sleep(GRACE_MS, over.signal)]);
    this.#abort.abort();
    await all;
    const { clock, keyValueOf, onWarning } = this.#host;
    if (clock.now() >= this.#until) return;
    await leavePeriod(keyValueOf(this.#tenant), CLAIM, this.#until).catch((error: unknown) =>
      onWarning(error, `notifications of ${this.#tenant}`),
    );
  }

  #noteEvent(conversation: string): void {
    for (const known of this.#known.values()) {
      if (known.failures > 0 || !isGranted({ conversations: [known.push.conversation] }, conversation))
        continue;
      known.dueAt = 0;
      this.#signal.raise();
    }
  }

  async #work(): Promise<void> {
    const { clock, onWarning } = this.#host;
    while (!this.#closing.signal.aborted) {
      try {
        if (this.#known.size === 0) await this.#signal.wait(clock, CHECK_MS);
        else if (await this.#claim()) await this.#signal.wait(clock, this.#startDue());
        else await clock.sleep(this.#standBy(), this.#closing.signal);
      } catch (error) {
        onWarning(error, `notifications of ${this.#tenant}`);
        await clock.sleep(STORE_PAUSE_MS, this.#closing.signal);
      }
    }
  }

  async #claim(): Promise<boolean> {
    const { clock, owner } = this.#host;
    const now = clock.now();
    if (now < this.#until - MARGIN_MS) return true;
    const keyValue = this.#host.keyValueOf(this.#tenant);
    const until = now + PERIOD_MS;
    if (await keyValue.claim(CLAIM, { owner, now, until })) this.#until = until;
    else this.#until = (await takeLeft(keyValue, CLAIM, { owner, now })) ?? this.#until;
    return now < this.#until - MARGIN_MS;
  }

  /** Time until the next claim, ms. A process cannot renew its own claim before the claim ends. */
  #standBy(): number {
    const rest = this.#until - this.#host.clock.now();
    return rest > 0 ? rest + 1 : STAND_BY_MS;
  }

  /** Starts due deliveries. Returns the time until the next one is due, ms. */
  #startDue(): number {
    const now = this.#host.clock.now();
    let next = this.#until - MARGIN_MS;
    for (const known of this.#known.values()) {
      if (known.isUnderWay) continue;
      if (known.dueAt > now) next = Math.min(next, known.dueAt);
      else if (this.#underWay.size < CONCURRENCY) this.#start(known, now);
    }
    return Math.max(1, next - now);
  }

  #start(known: Known, now: number): void {
    known.isUnderWay = true;
    known.dueAt = now + CHECK_MS;
    const done = this.#tell(known)
      .catch((error: unknown) => {
        known.dueAt = this.#host.clock.now() + STORE_PAUSE_MS;
        if (!this.#closing.signal.aborted) this.#warn(known, error);
      })
      .finally(() => {
        known.isUnderWay = false;
        this.#underWay.delete(done);
        this.#signal.raise();
      });
    this.#underWay.add(done);
  }

  async #tell(known: Known): Promise<void> {
    const stand = await taskStand(this.#host.troupeOf(this.#tenant), known.push);
    const stored = await readTaskPushes(this.#host.keyValueOf(this.#tenant));
    const push = stored.find((each) => isSamePush(each, known.push));
    if (!push || !stand) return this.#change(known, () => null);
    const body = JSON.stringify(stand.payload);
    const told = createHash('sha256').update(body).digest('base64url');
    if (push.told !== told) {
      const answer = await this.#send(push, body);
      if (answer.outcome === 'gone') return this.#change(known, () => null);
      if (answer.outcome !== 'taken') return this.#fail(known, answer);
    }
    known.failures = 0;
    if (stand.isOver) return this.#change(known, () => null);
    if (push.told !== told) await this.#change(known, (each) => ({ ...each, told }));
  }

  async #send({ url, token, authentication }: TaskPush, body: string): Promise<PostAnswer> {
    const { outgoing, metrics } = this.#host;
    const { scheme, credentials = '' } = authentication ?? {};
    const headers = {
      'content-type': 'application/a2a+json',
      ...(scheme !== undefined && { authorization: `${scheme} ${credentials}`.trim() }),
      ...(token !== undefined && { 'x-a2a-notification-token': token }),
    };
    const answer = await outgoing.post(url, { headers, body }, this.#abort.signal);
    metrics.count('webhook_deliveries', { tenant: this.#tenant, outcome: answer.outcome });
    return answer;
  }

  async #fail(known: Known, answer: Extract<PostAnswer, { why: string }>): Promise<void> {
    const { clock, random, outgoing } = this.#host;
    const now = clock.now();
    if (known.failures === 0) {
      known.failingSince = now;
      this.#warn(known, new Error(answer.why));
    }
    known.failures += 1;
    const isAsked = answer.outcome === 'failed' && answer.retryAfterMs !== null;
    const error = isAsked ? new RetryAfter(answer.retryAfterMs ?? 0, answer.why) : answer.why;
    known.dueAt = now + pauseAfter(error, known.failures, random);
    if (now - known.failingSince >= outgoing.giveUpAfterMs) await this.#change(known, () => null);
  }

  /** `apply` returns null to remove the receiver. */
  async #change(known: Known, apply: (push: TaskPush) => TaskPush | null): Promise<void> {
    await changeTaskPushes(this.#host.keyValueOf(this.#tenant), (all) =>
      all.flatMap((each) => (isSamePush(each, known.push) ? (apply(each) ?? []) : [each])),
    );
    const isCurrent = this.#known.get(keyOf(known.push)) === known;
    if (isCurrent && apply(known.push) === null) this.#known.delete(keyOf(known.push));
  }

  #warn({ push }: Known, error: unknown): void {
    this.#host.onWarning(error, `notifications of ${push.conversation}~${push.seq}`);
  }
}

function keyOf({ owner, conversation, seq, id }: TaskPush): string {
  return JSON.stringify([owner, conversation, seq, id]);
}

/** A task, by the message that began it. Id and time distinguish it from a task of a later conversation with the same id. */
interface TaskMark {
  agent: string;
  conversation: string;
  seq: number;
  event: string;
  at: number;
}

/** The state of a task, as a stream would report it. Null if the task was deleted. */
async function taskStand(
  troupe: TaskLog,
  { agent, conversation, seq, event, at }: TaskMark,
): Promise<{ payload: { statusUpdate: StatusUpdate }; isOver: boolean } | null> {
  try {
    const id = taskId({ conversation, seq });
    const sent = await findTask({ troupe, agent }, id);
    if (sent.id !== event || sent.at !== at) return null;
    const { status, isOver } = await readTask({ troupe }, sent);
    return { payload: { statusUpdate: { taskId: id, contextId: conversation, status } }, isOver };
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    if (error.code === 'task_unknown' || error.code === 'conversation_unknown') return null;
    throw error;
  }
}

/** Most receivers of a tenant. Only open tasks need any. */
const MOST_PER_TENANT = 200;
/** Most receivers of one key, so that others have room. */
const MOST_PER_KEY = 100;
const MOST_PER_TASK = 5;

/** A value of a header. */
const Secret = z
  .string()
  .max(4_000)
  .regex(/^[\x20-\x7e]*$/, 'it may have visible ASCII characters only');

const TaskPush = z.strictObject({
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
  /** Digest of the last state that the receiver accepted. */
  told: z.string().optional(),
});
/** A receiver of the states of an A2A task. */
interface TaskPush {
  /** Unique within the task and its owner. */
  id: string;
  /** Id of the caller that added it. Only this caller may see and delete it. */
  owner: string;
  agent: string;
  conversation: string;
  seq: number;
  /** Id of the message that began the task. */
  event: string;
  /** Time of that message, ms since the epoch. */
  at: number;
  url: string;
  /** Sent to the receiver in `X-A2A-Notification-Token`. */
  token?: string | undefined;
  /** Sent to the receiver in `Authorization`. */
  authentication?:
    | {
        /** The scheme, such as `Bearer`. */
        scheme: string;
        /** The value after the scheme. */
        credentials?: string | undefined;
      }
    | undefined;
  /** When it was stored, ms. */
  createdAt: number;
  /** Digest of the last state that the receiver accepted. */
  told?: string | undefined;
}

/** A task whose states may be sent, and the caller whose receivers are meant. */
type PushedTask = Pick<TaskPush, 'owner' | 'conversation' | 'seq' | 'event' | 'at'>;

/** The receivers of the states of one tenant's tasks. */
interface TaskPushRepository {
  /** Throws what `add` would throw now. */
  check(receiver: Pick<TaskPush, 'owner' | 'url' | 'token' | 'authentication'>): Promise<void>;
  /**
   * Stores a receiver, and replaces the owner's receiver with the same id. Throws `event_invalid`, `address_refused`, and
   * `command_refused` if the task, the owner or the tenant has its maximum.
   */
  add(push: Omit<TaskPush, 'createdAt' | 'told'>): Promise<void>;
  /** The receivers of a task and an owner, oldest first. */
  list(task: PushedTask): Promise<TaskPush[]>;
  /** Removes a receiver permanently. Returns whether there was one. */
  remove(task: PushedTask, id: string): Promise<boolean>;
}

interface RepositoryParts extends Pick<IntegrationBase, 'clock' | 'outgoing'> {
  keyValue: KeyValue;
  /** Called after each change. */
  onChange: () => void;
}

/** Owns the entry `a2a-push` of a tenant. `createTaskPushes` delivers. */
function createTaskPushRepository({
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

function isSamePush(one: TaskPush, other: TaskPush): boolean {
  return isOfTask(one, other) && one.id === other.id && one.createdAt === other.createdAt;
}

type Entries = Pick<KeyValue, 'get' | 'compareAndSet'>;

/** The entry for all receivers of a tenant, of which there are few. */
const KEY = 'a2a-push';

/** Oldest first. */
async function readTaskPushes(keyValue: Pick<KeyValue, 'get'>): Promise<TaskPush[]> {
  return parse(await keyValue.get(KEY));
}

/** `apply` may be called several times. It returns null if nothing should change. */
function changeTaskPushes(
  keyValue: Entries,
  apply: (pushes: TaskPush[]) => TaskPush[] | null,
): Promise<TaskPush[]> {
  return updateEntry(keyValue, KEY, parse, apply);
}

/** Throws for an unreadable entry: if it counted as empty, the next change would delete all receivers. */
function parse(text: string | null): TaskPush[] {
  return text === null ? [] : z.array(TaskPush).parse(JSON.parse(text));
}
