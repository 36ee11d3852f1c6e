import { kindOf, NO_TOKENS } from '../budget/content-kinds.ts';
import { inputLayers } from '../input-layers.ts';
import { atOnce } from '../steps.ts';
import { bytesOf, chainMessage, type View } from '../view.ts';

/** Sums over the slots, anew after a rewrite, and hashes, which take time by the character; a look ahead needs none. */
export function recount(view: View, { hashes }: { hashes: boolean }): void {
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
    if (hashes) view.chain = chainMessage(view.chain, message);
  }
  const frontier = slots.findLastIndex(({ pruned }) => pruned);
  view.frontier = frontier === -1 ? null : frontier;
  if (turn && hashes)
    view.turn = { ...turn, input: atOnce(inputLayers(slots.slice(begins), chainBefore, view.secret)) };
}
