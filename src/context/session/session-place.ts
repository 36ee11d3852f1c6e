import type { Session, SessionReason } from '../../events/index.ts';
import { chainMessage, type View } from '../view.ts';

/** Up to where of a view a session was sent, and whose answers it holds beyond that. */
export type SessionPlace = Pick<Session, 'sent' | 'sentHash' | 'turn'>;

/** The end of the view as it is now: all of it was sent. */
export function placeOf(view: View, turn: SessionPlace['turn']): SessionPlace {
  return { sent: view.slots.length, sentHash: view.chain, turn };
}

/** Whether the view still begins with what was sent: a relief rewrites it, and then what was sent is something else. */
export function standsAt({ slots }: View, { sent, sentHash }: SessionPlace): boolean {
  if (slots.length < sent) return false;
  const chain = slots.slice(0, sent).reduce((so, { message }) => chainMessage(so, message), '');
  return chain === sentHash;
}

/** What a session must match to be used. */
export interface SessionTerms {
  provider: string;
  model: string;
  home: string;
  /** The baseline event in force. */
  baseline: string;
  /** A session whose turn broke off can be taken back. */
  rewind: boolean;
  /** A session that the provider has shortened goes on. */
  keepsCompacted: boolean;
}

/** Why a session may not be used; null if it may. */
export function sessionMismatch(view: View, session: Session, terms: SessionTerms): SessionReason | null {
  if (session.provider !== terms.provider) return 'provider';
  if (session.model !== terms.model) return 'model';
  if (session.home !== terms.home) return 'elsewhere';
  if (session.state === 'unknown' && !terms.rewind) return 'unknown';
  if (session.compacted && !terms.keepsCompacted) return 'compacted';
  if (session.baseline !== terms.baseline) return 'baseline';
  return standsAt(view, session) ? null : 'rewritten';
}
