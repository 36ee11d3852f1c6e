import type { PromptLayer, PromptRecord, Session, SessionReason } from '../../events/index.ts';
import { chainMessage, type View, type Slot } from './view.ts';
import { hashText } from '../text/hash.ts';

/** The part of a view that a session was sent, and the turn whose answers the session has in addition. */
export type SessionPlace = Pick<Session, 'sent' | 'sentHash' | 'turn'>;

/** The place of a session that was sent the whole view. */
export function placeOf(view: View, turn: SessionPlace['turn']): SessionPlace {
  return { sent: view.slots.length, sentHash: view.chain, turn };
}

/** Whether the view still begins with what the session was sent. After a compaction it does not. */
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
  /** Id of the baseline event in force. */
  baseline: string;
  /** Whether the provider can rewind a session whose turn was interrupted. */
  rewind: boolean;
}

/** Whether a session was begun elsewhere and has not answered here yet. It is sent the whole prompt. */
export function isAdopted({ checkpoint }: Pick<Session, 'checkpoint'>): boolean {
  return checkpoint === '';
}

/** Reason not to use a session; null if it may be used. */
export function sessionMismatch(view: View, session: Session, terms: SessionTerms): SessionReason | null {
  if (session.provider !== terms.provider) return 'provider';
  if (session.model !== terms.model) return 'model';
  if (session.home !== terms.home) return 'elsewhere';
  // An adopted session has no answer here to which it could be rewound.
  if (session.state === 'unknown' && (!terms.rewind || isAdopted(session))) return 'unknown';
  if (session.baseline !== terms.baseline) return 'baseline';
  return standsAt(view, session) ? null : 'rewritten';
}

/**
 * The part of a prompt that a session at `place` has not seen: the rest of the view, without the session's own answers
 * and without the baseline. The agent's own words are included if the session lacks them, because their turn was interrupted,
 * rewound or ended by its calls.
 */
export function deltaOf(
  full: PromptRecord,
  view: View,
  { sent, turn }: Pick<SessionPlace, 'sent' | 'turn'>,
): PromptRecord {
  const unseen = view.slots.slice(sent).filter((slot) => turn === null || !isAnswerOf(turn, slot));
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

/** The layers of a delta. A turn's input is sent with its first step, so a delta has all of it or none. */
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
