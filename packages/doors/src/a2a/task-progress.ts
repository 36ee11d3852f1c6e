import {
  type Answers,
  type DelegationOpenedBody,
  type Event,
  type EventOf,
  type Failure,
  awaitAnswers,
} from '../troupe.ts';
import type { TaskState } from './protocol.ts';

/** A question or a request for approval that is open. */
export type Asked = EventOf<'question' | 'approval.requested'>;

type Thread = Pick<DelegationOpenedBody, 'thread' | 'assignee'>;

/** An agent, and the conversation in which it has something to do. */
export interface Worker {
  agent: string;
  conversation: string;
}

const TERMINAL: ReadonlySet<TaskState> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
]);

/** In these, clients expect nothing more without doing something. */
export function isAtRest(state: TaskState): boolean {
  return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED';
}

export function isTerminal(state: TaskState): boolean {
  return TERMINAL.has(state);
}

/**
 * How far the task has come that a message began. Owns what is open.
 *  P1  What has ended stays as it is, whatever comes in the conversation.
 *  P2  Questions and requests of turns that answer others are not its own.
 */
export class TaskProgress {
  readonly #sent: Event;
  readonly #answers: Answers;
  readonly #asked = new Map<string, Asked>();
  /** Delegations that are open, by id. */
  readonly #threads = new Map<string, Thread>();
  #isBegun = false;
  #state: TaskState = 'TASK_STATE_WORKING';
  #at: number;

  constructor(sent: Event) {
    this.#sent = sent;
    this.#answers = awaitAnswers(sent);
    this.#at = sent.at;
  }

  get state(): TaskState {
    return this.#state;
  }

  /** Time of the last change of the state, ms since the epoch. */
  get at(): number {
    return this.#at;
  }

  get threads(): readonly string[] {
    return [...this.#threads.values()].map(({ thread }) => thread);
  }

  /** The agents that have something to do for it, and where. */
  get workers(): readonly Worker[] {
    const { conversation } = this.#sent;
    const here = this.#answers.missing.map((agent) => ({ agent, conversation }));
    return [
      ...here,
      ...[...this.#threads.values()].map(({ thread, assignee }) => ({
        agent: assignee,
        conversation: thread,
      })),
    ];
  }

  /** Whether a turn has begun for it. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** Why nobody has answered. */
  get failure(): Failure | undefined {
    return this.#answers.failures[0];
  }

  /** What people are asked, oldest first. */
  get asked(): readonly Asked[] {
    const own = new Set(this.#answers.ends.map(({ turn }) => turn));
    const { conversation } = this.#sent;
    return [...this.#asked.values()].filter(
      (each) => each.conversation !== conversation || own.has(each.turn),
    );
  }

  /** Of the conversation, or of the thread of one of its delegations. Returns whether the state has changed. */
  note(event: Event): boolean {
    if (isTerminal(this.#state)) return false;
    this.#noteTasks(event);
    const isHere = event.conversation === this.#sent.conversation;
    if (isHere) this.#answers.note(event);
    if (isHere && event.kind === 'turn.started') this.#isBegun ||= event.body.inputs.includes(this.#sent.seq);
    const isCancelled = isHere && event.kind === 'command' && event.body.command === 'cancelTask';
    const state = isCancelled ? 'TASK_STATE_CANCELED' : this.#found();
    if (state === this.#state) return false;
    this.#state = state;
    this.#at = event.at;
    return true;
  }

  #noteTasks(event: Event): void {
    const { kind, body } = event;
    if (kind === 'question') this.#asked.set(body.question, event);
    if (kind === 'approval.requested') this.#asked.set(body.request, event);
    if (kind === 'question.answered') this.#asked.delete(body.question);
    if (kind === 'approval.decided') this.#asked.delete(body.request);
    if (kind === 'delegation.opened') this.#threads.set(body.delegation, body);
    if (kind === 'delegation.ended') this.#threads.delete(body.delegation);
  }

  #found(): TaskState {
    const { areComplete, missing, failures, replies, ends } = this.#answers;
    const isAsked = this.asked.length > 0;
    if (!areComplete)
      return missing.length === 0 && isAsked ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_WORKING';
    if (isAsked) return 'TASK_STATE_INPUT_REQUIRED';
    const turns = new Set(ends.map(({ turn }) => turn));
    if (failures.length === 0 || replies.some(({ turn }) => turns.has(turn))) return 'TASK_STATE_COMPLETED';
    return failures.every(({ code }) => code === 'aborted') ? 'TASK_STATE_CANCELED' : 'TASK_STATE_FAILED';
  }
}
