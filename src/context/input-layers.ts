import { hashText } from './hash.ts';
import { imagesText } from './message-text.ts';
import { imagesIn, type Slot } from './slot.ts';
import { liveText, liveTokens, renderPart } from './turn-input.ts';
import type { InputLayers } from './view.ts';

/** The layers of a turn's input, from its slots; `chainBefore` is the chain over all that stands before them. */
export function inputLayers(slots: readonly Slot[], chainBefore: string, secret: string): InputLayers {
  const tokens = { missed: 0, trigger: 0, live: 0 };
  const texts: { missed: string[]; trigger: string[] } = { missed: [], trigger: [] };
  let live = '';
  for (const { layer, part, tokens: size } of slots) {
    if ((layer !== 'missed' && layer !== 'trigger') || !part) continue;
    const said = liveText(part, secret);
    live += said;
    const ofLive = liveTokens(part, said);
    tokens[layer] += size - ofLive;
    tokens.live += ofLive;
    texts[layer].push(renderPart({ ...part, live: null }, secret) + imagesText(imagesIn(part)));
  }
  const hashes = {
    missed: hashText(texts.missed.join('\n')),
    trigger: hashText(texts.trigger.join('\n')),
    live: hashText(live),
  };
  return { chainBefore, tokens, hashes };
}
