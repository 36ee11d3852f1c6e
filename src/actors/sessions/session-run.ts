import type { SessionPlace, SessionTerms } from '../../context/index.ts';
import type { ActorRecord, PromptReceipt, PromptRecord, Session, SessionReason } from '../../events/index.ts';
import type { SessionRequest } from '../../providers/provider.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';

/** How a turn stands with the session of its provider. Nothing of it is needed where the provider has none. */
export interface SessionRun {
  /** The session as it may be used; null: a new one begins with the next request. */
  base: Session | null;
  /** Why there is none. */
  reason: SessionReason;
  /** Where the provider waits for the results of this turn's calls. */
  open: SessionPlace | null;
  /** Something was sent, and not answered to the end: what the session holds of it is not known. */
  touched: boolean;
  /** The provider has shortened its memory in this turn. */
  compacted: boolean;
  /** A call of this turn was answered without its usage. */
  untold: boolean;
  /** Notes written, for their ids. */
  notes: number;
}

/** With the answer of a step: what its session is afterwards, and what it was sent of the view. */
export interface AnswerSession {
  /** Null while the turn is open in the provider. */
  mark: { id: string; checkpoint: string; home: string } | null;
  delta: PromptReceipt['delta'] | null;
  compacted: boolean;
}

export function sessionRun(record: ActorRecord): SessionRun {
  const none = { open: null, touched: false, compacted: false, untold: false, notes: 0 };
  return { base: record.session, reason: 'first', ...none };
}

/** What is sent for the present step. `place` is where the session stands when it is answered. */
export interface Sending {
  prompt: PromptRecord;
  session?: { request: SessionRequest; place: SessionPlace };
}

/** What this session must match to be used by this member. Who only looks has no provider, and asks of no machine. */
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
