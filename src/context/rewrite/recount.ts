import { kindOf, NO_TOKENS } from '../budget/content-kinds.ts';
import { inputLayers } from '../input-layers.ts';
import { bytesOf, chainMessage, type View } from '../view.ts';

/** Sums and hashes over the slots, anew after a rewrite. */
export function recount(view: View): void {
  const { slots, turn } = view;
  view.tokens = 0;
  view.kinds = { ...NO_TOKENS };
  view.bytes = 0;
  view.chain = '';
  const begins = turn?.begins ?? slots.length;
  const input = slots.findIndex(({ layer }, at) => at >= begins && layer !== 'history');
  let chainBefore = '';
  for (const [at, { message, tokens }] of slots.entries()) {
    if (at === input) chainBefore = view.chain;
    view.tokens += tokens;
    view.kinds[kindOf(message)] += tokens;
    view.bytes += bytesOf(message);
    view.chain = chainMessage(view.chain, message);
  }
  const frontier = slots.findLastIndex(({ pruned }) => pruned);
  view.frontier = frontier === -1 ? null : frontier;
  if (turn) view.turn = { ...turn, input: inputLayers(slots.slice(begins), chainBefore, view.secret) };
}
