import type { PromptLayer, PromptRecord, Session, SessionReason } from '../events/index.ts';
import { chainMessage, type View } from './view.ts';
import { hashText } from './hash.ts';
import type { Slot } from './slot.ts';

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

/**
 * Of a whole prompt, what a session that stands at `place` has not seen: the view from there on, without the answers
 * that the session gave itself, and without the baseline. Words of the agent's own that the session does not hold (of a
 * turn that broke off, or was taken back) stay.
 */
export function deltaOf(
  full: PromptRecord,
  view: View,
  { sent, turn }: Pick<SessionPlace, 'sent' | 'turn'>,
): PromptRecord {
  const unseen = view.slots.slice(sent).filter((slot) => !isAnswerOf(turn, slot));
  const { note } = view;
  const messages = [...unseen, ...(note ? [note] : [])].map(({ message }) => message);
  return {
    ...full,
    mode: 'delta',
    delta: { sent, turn, baseline: full.layers.find(({ stability }) => stability === 'epoch')?.source ?? '' },
    layers: layersOf(full, view, { sent, unseen }),
    messages,
    count: messages.length,
    chain: messages.reduce((chain, message) => chainMessage(chain, message), ''),
    tokens: { ...full.tokens, total: unseen.reduce((sum, { tokens }) => sum + tokens, note?.tokens ?? 0) },
    breakpoints: [],
  };
}

function isAnswerOf(turn: string, { message, event }: Slot): boolean {
  return message.role === 'assistant' && (event?.startsWith(`${turn}:`) ?? false);
}

/** A turn's input is in the delta whole or not at all: it is sent with its first step. */
function layersOf(
  { layers, upTo }: PromptRecord,
  view: View,
  { sent, unseen }: { sent: number; unseen: readonly Slot[] },
): PromptLayer[] {
  const input =
    view.turn && view.turn.begins >= sent ? layers.filter(({ stability }) => stability === 'turn') : [];
  const rest = unseen.filter(({ layer }) => input.length === 0 || layer === 'history' || layer === 'summary');
  const first = rest[0];
  const history: PromptLayer = {
    name: 'history',
    stability: 'append',
    tokens: rest.reduce((sum, { tokens }) => sum + tokens, 0),
    hash: hashText(rest.map(({ message }) => message.content).join('\n')),
    source: `${first ? (first.message.seqs[0] ?? first.at ?? upTo) : upTo}..${upTo}`,
  };
  return [history, ...input, ...layers.filter(({ stability }) => stability === 'step')];
}
