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
  /** Where it is said. */
  conversation: ConversationId;
  /** Ids of the agents that it is said to. */
  to: AgentId;
  /** What is said. */
  content: string;
  /** The last scheduled time that is not after `now`, ms; null: none. */
  lastBy(now: number): number | null;
}

/** What a provider says of its session, or of an answer that it has begun. */
export type SessionEvent = Extract<ModelEvent, { type: 'begun' | 'session' | 'compacted' }>;

export type SummaryAnswer =
  | { kind: 'answered'; text: string; usage: Usage; response?: ResponseName }
  | { kind: 'failed'; code: ErrorCode; message: string }
  | { kind: 'aborted' };

/** A summary that another program made of a conversation, and the last event that it covers. */
export interface ImportedSummary {
  number: number;
  last: EventId;
  upTo: number;
  text: string;
  filesRead: readonly string[];
  filesModified: readonly string[];
}

export interface PaidCall {
  /** Unique per call and attempt: a repeated call is paid again. */
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
  /** What the cap is for. */
  scope: 'tenant' | 'conversation' | 'tree' | 'agent';
  /** Id of the conversation or the agent. */
  id: string | null;
  /** Period of the cap. */
  per: Period;
  /** End of the period, ms since the epoch. Null: never. */
  until: number | null;
  /** Null: no cap on this unit. */
  cap: Record<keyof BudgetAmount, number | null>;
  /** Spent in this period. */
  spent: BudgetAmount;
  /** Reserved for calls under way. */
  held: BudgetAmount;
  /** At least 0. Null: unlimited. */
  free: Record<keyof BudgetAmount, number | null>;
}

export type Gate =
  | { kind: 'corrected'; note: string }
  /** The turn ends with work left to do: the log says so, for people. */
  | { kind: 'given up'; stop: GuardStoppedBody };

/** Steps that agents take a conversation through. */
export interface Workflow {
  id: string;
  /** Purpose of a run that names none. */
  directive?: string | undefined;
  steps: readonly RunStep[];
}

export type Period = 'day' | 'month' | 'ever';

export interface Cap {
  /** Most tokens. */
  tokens?: number | undefined;
  /** Most dollars. */
  usd?: number | undefined;
  /** The time in which it holds. */
  per?: Period | undefined;
}

export interface BudgetCaps {
  /** For each tenant. */
  tenant?: Cap | undefined;
  /** For each conversation, with the threads opened below it. */
  conversation?: Cap | undefined;
  /** For everything that is delegated because of one message of a person or a schedule. */
  tree?: Cap | undefined;
  /** For each of a tenant's agents, over all its conversations. */
  agents?: Record<string, Cap> | undefined;
}

/** The result of a call that is not made. */
interface RecordedResult {
  outcome: ToolOutcome;
  text: string;
  /** The call ended the original turn, and ends this one. */
  ends: boolean;
}

/** What the calls of a repeated turn are told. Null: the call is made. */
export type RecordedCalls = (call: ToolCall) => Promise<RecordedResult | null>;

/** State of the provider's session in a turn. Unused by providers without sessions. */
export interface SessionRun {
  /** The session to resume; null if the next request begins a new one. */
  base: Session | null;
  /** The reason for a new session. */
  reason: SessionReason;
  /** Place at which the provider waits for the results of this turn's calls. */
  open: SessionPlace | null;
  /** A request was not answered to the end, so it is unknown what the session holds of it. */
  touched: boolean;
  /** The provider has shortened its memory in this turn. */
  compacted: boolean;
  /** A call of this turn was answered without usage. */
  untold: boolean;
  /** Number of session events written; part of their ids. */
  notes: number;
}

/** Journalled with a step's answer: its session afterwards, and the part of the view that was sent. */
export interface AnswerSession {
  /** Null while the turn is open in the provider. */
  mark: { id: string; checkpoint: string; home: string } | null;
  delta: PromptReceipt['delta'] | null;
  compacted: boolean;
}

/** Beside the session of the record, at the start of a turn. */
export const NEW_SESSION_RUN: Readonly<Omit<SessionRun, 'base'>> = {
  reason: 'first',
  open: null,
  touched: false,
  compacted: false,
  untold: false,
  notes: 0,
};

/** The request of the present step. `place` is where the session stands after the answer. */
export interface Sending {
  prompt: PromptRecord;
  session?: { request: SessionRequest; place: SessionPlace };
}

/** What a session must match to be resumed. Without a real provider, as in the inspector, the home is not checked. */
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

/** The marks that a provider has given of the answer to a step. */
export interface BegunAnswer {
  /** Of the journal, without the number of the mark. */
  key: string;
  /** Number of marks. */
  count: number;
  last: string | null;
}
