import {
  type Author,
  type ConversationId,
  type Event,
  type EventKind,
  type EventOf,
  eventOf,
  type PromptRecord,
  type Usage,
  type ByKind,
  forKind,
  summariseEvent,
} from './troupe.ts';

/** Usage of a turn that made no model call. */
export const NO_USAGE: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** The result of a conversation, as matchers read it. Plain data, which `readRun` makes from any log. */
export interface ConversationRun {
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Events of the conversation and of its tasks' threads, in causal order: a thread's come before the end of its task. */
  events: readonly Event[];
  /** Turns of all agents, in the order of their starts. */
  turns: readonly RunTurn[];
  /** Duration in ms on the conversation's clock, from its first event to the end of the run. */
  durationMs: number;
  /** How the run ended. A log that was not played has `done`. */
  ended: RunEnd;
  /** Where people can view the run. Null: it was in memory only. */
  place: RunPlace | null;
  /** The simulated users, in the order in which they were given. A log that was not played has none. */
  users: readonly RunUser[];
}

/** A simulated user: its outcome, and what it cost. Its cost does not count for the company. */
export interface RunUser {
  /** Id of the person. */
  id: string;
  /** Name of the person. */
  name: string;
  /** Whether it has reached its goal. */
  outcome: UserOutcome;
  /** Number of its moves, including waits. */
  moves: number;
  /** Calls of its model. */
  calls: number;
  /** Tokens of these calls, in and out. */
  tokens: number;
  /** US dollars. Null: the model has no price. */
  dollars: number | null;
}

/**
 * The outcome for a simulated user. `reached`, `gave up`: as the user said itself. `stopped`: it reached its maximum of moves,
 * or its model did not answer with a move. `open`: the run ended first.
 */
export interface UserOutcome {
  /** How it ended. */
  readonly kind: 'reached' | 'gave up' | 'stopped' | 'open';
  /** The reason, in its own words or in Troupe's. */
  readonly why: string;
}

/** `impossible`: a user made a move that the conversation did not allow at that point. */
export type RunEnd =
  | { readonly kind: 'done' }
  | {
      /** The run ended early. */
      readonly kind: 'impossible';
      /** The intended move, and why it was impossible. */
      readonly why: string;
    };

/** The data of a run, and how to open them. */
export interface RunPlace {
  /** The data directory. */
  data: string;
  /** The agents file. Null: the company was given as an object. */
  agentsFile: string | null;
}

/** One turn of an agent. */
export interface RunTurn {
  /** Its id, `conversation:agent:number`. */
  id: string;
  /** Id of the agent. */
  agent: string;
  /** Where it happened: the conversation or a thread. */
  conversation: ConversationId;
  /** Number of the turn among those of its agent in its conversation, from 1. */
  number: number;
  /** How it ended. `open`: it has not ended. */
  status: 'done' | 'failed' | 'aborted' | 'open';
  /** The events that it answers. */
  inputs: readonly Event[];
  /** The people and agents that it answers: the authors of its inputs, and those who caused these. */
  askedBy: readonly Author[];
  /** Its own events, oldest first. */
  events: readonly Event[];
  /** Its model calls. */
  prompts: readonly RunPrompt[];
  /** Tokens as the provider reported them. */
  usage: Usage;
  /** US dollars. Null: the model has no price. */
  cost: number | null;
}

/** What a model was sent in one call. */
export interface RunPrompt {
  /** Number of the call within its turn, from 1. */
  step: number;
  /** Name of the model. */
  model: string;
  /** The messages, the instructions first. */
  messages: PromptRecord['messages'];
  /** The tools it was offered. */
  tools: PromptRecord['tools'];
  /** Whether rendering it again from the log gave the bytes that were sent. */
  verified: boolean;
}

/** A tool call with its result. */
export interface RunCall {
  /** The turn that made it. */
  turn: RunTurn;
  /** Name of the tool. */
  tool: string;
  /** Arguments as the model wrote them. */
  args: string;
  /** The step in which the call was made. */
  step: EventOf<'step'>;
  /** Its result. Null: it has none yet. */
  result: EventOf<'tool.result'> | null;
}

/**
 * All tool calls, in the order in which they were made. A call that waits for a person has two steps in the log, but is one
 * call here: it has the step in which the model made it, and its final result.
 */
export function callsOf({ events, turns }: ConversationRun): RunCall[] {
  const results = new Map<string, EventOf<'tool.result'>>();
  const requests = new Set<string>();
  for (const event of events) {
    if (event.kind === 'tool.result') results.set(keyOf(event.conversation, event.body.call), event);
    if (event.kind === 'approval.requested') requests.add(event.body.request);
  }
  return turns.flatMap((turn) => {
    const own = ofKind(turn, 'tool.result');
    const asked = ofKind(turn, 'approval.requested');
    const waiting = own.filter(({ body }) => body.outcome === 'waiting');
    return ofKind(turn, 'step').flatMap((step) => {
      const made = step.body.calls.filter(({ id }) => !requests.has(id));
      return made.map(({ id, name, args }): RunCall => {
        const first = own.findLast(({ body }) => body.call === id) ?? null;
        // Both are in the order of the calls. An approved call has the id of its request.
        const request = first && asked[waiting.indexOf(first)];
        const last = request && results.get(keyOf(turn.conversation, request.body.request));
        return { turn, tool: name, args, step, result: last ?? first };
      });
    });
  });
}

function ofKind<K extends EventKind>(turn: RunTurn, kind: K): EventOf<K>[] {
  return turn.events.flatMap((event) => eventOf(event, kind) ?? []);
}

function keyOf(conversation: string, call: string): string {
  return `${conversation} ${call}`;
}

type SpokenKind =
  | 'message'
  | 'notice'
  | 'step'
  | 'question'
  | 'question.answered'
  | 'approval.decided'
  | 'handoff'
  | 'delegation.opened'
  | 'delegation.ended';

/** The texts of agents and people, including text beside tool calls. */
const SPOKEN: ByKind<SpokenKind, string> = {
  message: ({ body }) => body.content,
  notice: ({ body }) => body.content,
  step: ({ body }) => body.content,
  question: ({ body }) => body.text,
  'question.answered': ({ body }) => body.content,
  'approval.decided': ({ body }) => body.note,
  handoff: ({ body }) => Object.values(body.summary).flat().join('\n'),
  'delegation.opened': ({ body }) => body.task,
  'delegation.ended': ({ body }) => body.result,
};

export function isSpoken({ kind }: Event): boolean {
  return Object.hasOwn(SPOKEN, kind);
}

/** The text of an event as its author wrote it. For other events, a line that describes it. */
export function eventWords(event: Event): string {
  return forKind(SPOKEN, event) ?? summariseEvent(event);
}

/** The text of an event as data, if the log has data. */
export function eventData(event: Event): unknown {
  if (event.kind === 'message' || event.kind === 'delegation.ended') return event.body.data;
  return undefined;
}
