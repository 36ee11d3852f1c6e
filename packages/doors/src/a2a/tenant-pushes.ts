import { createHash } from 'node:crypto';
import {
  isGranted,
  type IntegrationHost,
  leavePeriod,
  pauseAfter,
  type PostAnswer,
  RetryAfter,
  Signal,
  takeLeft,
  TroupeError,
} from '../troupe.ts';
import { changeTaskPushes, isSamePush, readTaskPushes, type TaskPush } from './task-push.ts';
import type { StatusUpdate } from './protocol.ts';
import { findTask, readTask, type TaskLog } from './read-task.ts';
import { taskId } from './task-id.ts';

interface Known {
  push: TaskPush;
  dueAt: number;
  isUnderWay: boolean;
  failures: number;
  failingSince: number;
}

const CLAIM = 'a2a-push';
/** Length of a claim: one process delivers for this long. */
const PERIOD_MS = 30_000;
/** No delivery starts within this time before the end of a claim. */
const MARGIN_MS = 200;
const STAND_BY_MS = 10_000;
/** Notices of events may be lost. */
const CHECK_MS = 60_000;
const STORE_PAUSE_MS = 5_000;
/** Deliveries of one tenant at once. */
const CONCURRENCY = 4;
const GRACE_MS = 3_000;

/**
 * Sends the states of one tenant's tasks to their receivers.
 *  T1  After a notice of an event, and once a minute, the task is read. If it stands otherwise than its receiver was told, that
 *      is sent. Only a digest of what was taken is stored, after the answer: each state that lasts is sent at least once,
 *      across crashes; one that has passed meanwhile is not.
 *  T2  After the end of a task was taken, after 410, after the deletion of the conversation, and after `disableAfterMs` of
 *      failures in this process, the receiver is removed. After any other answer it is tried again, after a pause.
 *  T3  A receiver delays no other, as long as a tenant has fewer than four that are slow.
 *  T4  One process at a time delivers, by a claim. Two at once may deliver twice; they do no other harm.
 */
export class TenantPushes {
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

  /** Takes what is stored now. */
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

  /** Time until the next claim, ms. A process cannot renew its own before that has ended. */
  #standBy(): number {
    const rest = this.#until - this.#host.clock.now();
    return rest > 0 ? rest + 1 : STAND_BY_MS;
  }

  /** Returns the time until the next is due, ms. */
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

  /** Null removes it. */
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

/** A task, by the message that began it. Id and time tell it from one of a later conversation with the same id. */
interface TaskMark {
  agent: string;
  conversation: string;
  seq: number;
  event: string;
  at: number;
}

/** How a task stands, as a stream would tell it. Null: it was deleted. */
export async function taskStand(
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
