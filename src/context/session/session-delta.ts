import type { PromptLayer, PromptRecord } from '../../events/index.ts';
import { hashText } from '../hash.ts';
import type { Slot } from '../slot.ts';
import { chainMessage, type View } from '../view.ts';
import type { SessionPlace } from './session-place.ts';

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
