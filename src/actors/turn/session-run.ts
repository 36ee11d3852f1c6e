import type { SessionPlace, SessionTerms } from '../../context/index.ts';
import type { PromptReceipt, PromptRecord, Session, SessionReason } from '../../events/index.ts';
import type { SessionRequest } from '../../providers/provider.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';

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
  { profile, provider, keepsCompacted }: AgentRuntime,
  baseline: string,
  { home }: Session,
): SessionTerms {
  return {
    provider: profile.provider,
    model: profile.model,
    home: provider.home ?? home,
    baseline,
    rewind: provider.capabilities.rewind,
    keepsCompacted,
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
