import type {
  AgentId,
  ConversationId,
  Event,
  EventOf,
  StateNote,
  ToolOutcome,
  TurnId,
} from '../events/index.ts';

/** Of whom and where a part is. With tasks for other agents, `conversation` may be a thread. */
interface PartPlace {
  /** The conversation that was asked about, or a thread of it. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** Id of its turn. */
  turn: TurnId;
}

/**
 * Where in a running turn something happens. It is provisional: when the turn ends, its events say what counts. A higher
 * `attempt` voids what earlier ones have told, a higher `round` what the same step has said before.
 */
interface LivePart extends PartPlace {
  provisional: true;
  /** Attempts of the turn, from 1. */
  attempt: number;
  /** Steps of the turn, from 1. Each is one answer of the model; the last one is the reply. */
  step: number;
  /** Model calls of the attempt; 0 for tool calls that run before the first, such as approved ones. */
  round: number;
}

/** Something that is in the log, and stays. */
interface Committed<E extends Event> {
  /** The conversation that was asked about, or a thread of it. */
  conversation: ConversationId;
  /** Null: a person or the runtime has written it. */
  agent: AgentId | null;
  /** Null: it belongs to no turn. */
  turn: TurnId | null;
  /** The event as it is in the log. */
  event: E;
}

/** Words of an answer as the model writes them. The text parts of the last step, joined, are the reply. */
export interface TextPart extends LivePart {
  type: 'text';
  /** Position in the text of the step, in characters. At 0 the text begins anew. */
  index: number;
  /** The words. */
  text: string;
}

/** A piece of the model's reasoning. */
export interface ReasoningPart extends LivePart {
  type: 'reasoning';
  /** Position in the reasoning of the step, in characters. At 0 it begins anew. */
  index: number;
  /** The words. */
  text: string;
}

/** A tool call: `writing` while its arguments grow, `running` once it runs, `dropped` if the model did not finish it. */
export interface CallPart extends LivePart {
  type: 'call';
  /** `writing`: the model still writes the arguments. `dropped`: it ended within them, and the call does not run. */
  status: 'writing' | 'running' | 'dropped';
  /** Id of the call; its progress and its result have the same one. */
  call: string;
  /** Name of the tool. */
  name: string;
  /** The arguments so far: JSON once it runs, empty if it was dropped. Long ones are cut. */
  args: string;
}

/** How far a running call has come, as the tool tells it with `context.progress`. */
export interface ProgressPart extends LivePart {
  type: 'progress';
  /** Id of the call. */
  call: string;
  /** Name of the tool. */
  name: string;
  /** What the tool says of it, cut at 1,000 characters. */
  text?: string | undefined;
  /** Units done, of `total` if that is known. */
  done?: number | undefined;
  /** Units there are. */
  total?: number | undefined;
}

/** What a call gave. Long results are cut; the event `tool.result` follows with the step. */
export interface ResultPart extends LivePart {
  type: 'result';
  /** Id of the call. */
  call: string;
  /** Name of the tool. */
  name: string;
  /** Whether it has succeeded. */
  outcome: ToolOutcome;
  /** The result as the model reads it, or its beginning. */
  text: string;
}

/** What the round has told so far does not count, because its model call failed; with `all`, nothing of the attempt does. */
export interface VoidPart extends LivePart {
  type: 'void';
  /** Why, for people. */
  reason: string;
  /** Whether it voids the whole attempt. */
  all: boolean;
}

/** A transition of an agent's machine. */
export interface StatePart {
  type: 'state';
  /** The conversation that was asked about, or a thread of it. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** Null between turns. */
  turn: TurnId | null;
  /** The states of its machines. */
  state: StateNote;
}

/** An agent hands the conversation over, to those that `event.to` names. */
export interface HandoffPart extends Committed<EventOf<'handoff'>> {
  type: 'handoff';
}

/** An agent asks people something. Answer it with the command `answer`. */
export interface QuestionPart extends Committed<EventOf<'question'>> {
  type: 'question';
}

/** A tool call waits for the approval of people. Decide it with the command `decide`. */
export interface ApprovalPart extends Committed<EventOf<'approval.requested'>> {
  type: 'approval';
}

/** Any other event. */
export interface EventPart extends Committed<Event> {
  type: 'event';
}

/**
 * What happens while a message is being answered, in the conversation and in the threads of tasks. Parts with
 * `provisional` are of the moment; parts with `event` are in the log.
 */
export type Part =
  | TextPart
  | ReasoningPart
  | CallPart
  | ProgressPart
  | ResultPart
  | VoidPart
  | StatePart
  | HandoffPart
  | QuestionPart
  | ApprovalPart
  | EventPart;
