import type { Wait } from '../../actors/conversations/conversation-work.ts';
import type { Event, EventOf, Usage } from '../../events/index.ts';

/** Why an agent gives no answer. */
export interface Failure {
  /** Id of the agent. */
  agent: string;
  /** Code of the error. */
  code: string;
  /** What happened, for people. */
  message: string;
}

/** What came of a message. */
export interface Answer<Data = unknown> {
  /** Words of the last reply of an agent. Empty: nobody replied. */
  text: string;
  /** The last reply as data, of an agent with a `reply` schema. */
  data?: Data;
  /** `answered`: by everybody it woke. `waiting`: for what `waits` names. `failed`: an agent gave no answer. */
  outcome: 'answered' | 'waiting' | 'failed';
  /** Messages of agents since, oldest first. */
  replies: EventOf<'message'>[];
  /** The message and all events of the conversation since, oldest first. */
  events: Event[];
  /** The tasks that wait for people, or for agents that take no turns. */
  waits: Wait[];
  /** Agents that gave no answer, and why. */
  failures: readonly Failure[];
  /** Tokens of the turns that answered, in threads too, as their providers reported them. */
  usage: Usage;
  /** US dollars at list prices or the prices of the definition. Null: a model has no price. */
  cost: number | null;
}

/** Options of `ask` and `stream`. */
export interface AskOptions {
  /** Ends the wait, with the error `aborted`. The agents go on. */
  signal?: AbortSignal | undefined;
  /** Longest wait, ms, at most 24.8 days. Then `ask` throws `aborted`. The agents go on. Default: none. */
  timeoutMs?: number | undefined;
}
