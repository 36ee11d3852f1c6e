import type {
  AgentId,
  ConversationId,
  EventId,
  GuardStoppedBody,
  RunStep,
  Usage,
  ToolCall,
  ToolOutcome,
  PromptReceipt,
  PromptRecord,
  Session,
  SessionReason,
} from '../../events/index.ts';
import type { ErrorCode } from '../../base/errors.ts';
import type { ModelEvent, ResponseName, SessionRequest } from '../../providers/provider.ts';
import type { ModelPrice } from '../../providers/prices.ts';
import type { Amount, AskedCall } from './call-cost.ts';
import type { SessionPlace, SessionTerms } from '../../context/index.ts';
import type { AgentRuntime } from '../actor/agent-runtime.ts';

/** A message that the runtime sends to an agent at fixed times. */
export interface Schedule {
  /** Its name. */
  name: string;
  /** The conversation to which it is sent. */
  conversation: ConversationId;
  /** Id of the agent that it addresses. */
  to: AgentId;
  /** Text of the message. */
  content: string;
  /** The last scheduled time that is not after `now`, ms since the epoch; null if there is none. */
  lastBy(now: number): number | null;
}

/** Reports of a provider about its session, or about an answer that it has begun. */
export type SessionEvent = Extract<ModelEvent, { type: 'begun' | 'session' | 'compacted' }>;

export type SummaryAnswer =
  | { kind: 'answered'; text: string; usage: Usage; response?: ResponseName }
  | { kind: 'failed'; code: ErrorCode; message: string }
  | { kind: 'aborted' };

/** A summary that another program made of a conversation. `upTo`: the last event that it covers. */
export interface ImportedSummary {
  number: number;
  last: EventId;
  upTo: number;
  text: string;
  filesRead: readonly string[];
  filesModified: readonly string[];
}

export interface PaidCall {
  /** Unique per call and attempt, because a repeated call is paid again. */
  id: string;
  asked: AskedCall;
  /** Price of the model. Null: the call counts in tokens only. */
  price: ModelPrice | null;
}

export type Paid<T> =
  | { kind: 'made'; outcome: T; spent: Amount }
  | { kind: 'refused'; message: string }
  | { kind: 'aborted' };

export interface BudgetAmount {
  /** Tokens of prompts and answers together. */
  tokens: number;
  /** US dollars. */
  usd: number;
}

/** One budget in its present period. */
export interface BudgetLine {
  /** The kind of what the cap is for. */
  scope: 'tenant' | 'conversation' | 'tree' | 'agent';
  /** Id of the conversation or the agent. */
  id: string | null;
  /** Period of the cap. */
  per: Period;
  /** End of the period, ms since the epoch. Null: never. */
  until: number | null;
  /** The cap; null: no cap on this unit. */
  cap: Record<keyof BudgetAmount, number | null>;
  /** Spent in this period. */
  spent: BudgetAmount;
  /** Reserved for running calls. */
  held: BudgetAmount;
  /** The remaining amount, at least 0; null: unlimited. */
  free: Record<keyof BudgetAmount, number | null>;
}

export type Gate =
  | { kind: 'corrected'; note: string }
  /** The turn ends with work left to do, and the log tells people so. */
  | { kind: 'given up'; stop: GuardStoppedBody };

/** A sequence of steps for the agents of a conversation. */
export interface Workflow {
  id: string;
  /** Purpose of a run that names none. */
  directive?: string | undefined;
  steps: readonly RunStep[];
}

export type Period = 'day' | 'month' | 'ever';

export interface Cap {
  /** Maximum tokens. */
  tokens?: number | undefined;
  /** Maximum US dollars. */
  usd?: number | undefined;
  /** The period for which it holds. */
  per?: Period | undefined;
}

export interface BudgetCaps {
  /** Cap for each tenant. */
  tenant?: Cap | undefined;
  /** Cap for each conversation together with its threads. */
  conversation?: Cap | undefined;
  /** Cap for all tasks that follow from one message of a person or a schedule. */
  tree?: Cap | undefined;
  /** Caps for agents by id, each over all conversations of a tenant. */
  agents?: Record<string, Cap> | undefined;
}

interface RecordedResult {
  outcome: ToolOutcome;
  text: string;
  /** Whether the call ended the original turn, and so ends this one. */
  ends: boolean;
}

/** Returns the recorded result of a call in a repeated turn. Null: the call is made. */
export type RecordedCalls = (call: ToolCall) => Promise<RecordedResult | null>;

/** State of the provider's session in a turn. Unused by providers without sessions. */
export interface SessionRun {
  /** The session to resume; null if the next request begins a new one. */
  base: Session | null;
  /** The reason for a new session. */
  reason: SessionReason;
  /** The part of the view that the provider has while it waits for results of this turn's calls. Null if it does not wait. */
  open: SessionPlace | null;
  /** Whether a request was not answered to the end, so that it is unknown how much of it the session has. */
  touched: boolean;
  /** What the last answer of this turn told of the session. */
  last: AnswerSession | null;
  /** Whether the provider has compacted its session in this turn. */
  compacted: boolean;
  /** Whether a call of this turn was answered without usage. */
  untold: boolean;
  /** Number of session events that were written, which is part of their ids. */
  notes: number;
}

/** The part of a journalled answer about its session: the session afterwards, and the part of the view that was sent. */
export interface AnswerSession {
  /** The session after the answer; null if it cannot be resumed there. */
  mark: { id: string; checkpoint: string; home: string } | null;
  /** What the session has at the mark of an answer that made calls: all that was sent before it. */
  place?: SessionPlace;
  delta: PromptReceipt['delta'] | null;
  compacted: boolean;
}

/** State at the start of a turn, without the session of the record. */
export const NEW_SESSION_RUN: Readonly<Omit<SessionRun, 'base'>> = {
  reason: 'first',
  open: null,
  touched: false,
  last: null,
  compacted: false,
  untold: false,
  notes: 0,
};

/** The request of the present step. `place`: the part of the view that the session has after the answer. */
export interface Sending {
  prompt: PromptRecord;
  session?: { request: SessionRequest; place: SessionPlace };
}

/** What a session must match to be resumed. The home is not checked without a real provider, as in the inspector. */
export function termsFor(
  { profile, provider }: AgentRuntime,
  baseline: string,
  { home }: Session,
): SessionTerms {
  return {
    provider: profile.provider,
    model: profile.model,
    home: provider.home ?? home,
    baseline,
    rewind: provider.capabilities.rewind,
  };
}

/** The marks by which a provider can resume an answer that it has begun for a step. */
export interface BegunAnswer {
  /** Key in the journal, without the number of the mark. */
  key: string;
  /** Number of marks. */
  count: number;
  last: string | null;
}
