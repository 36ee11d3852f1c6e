import { hashSteps } from './hash.ts';
import { imagesText } from './message-text.ts';
import { imagesIn, type Slot } from './slot.ts';
import type { Steps } from './steps.ts';
import { liveText, liveTokens, withoutLive } from './turn-input.ts';
import type { InputLayers } from './view.ts';

/** The layers of a turn's input, from its slots; `chainBefore` is the chain over all that stands before them. */
export function* inputLayers(
  slots: readonly Slot[],
  chainBefore: string,
  secret: string,
): Steps<InputLayers> {
  const tokens = { missed: 0, trigger: 0, live: 0 };
  const texts: { missed: string[]; trigger: string[] } = { missed: [], trigger: [] };
  let live = '';
  for (const { layer, part, message, tokens: size } of slots) {
    if ((layer !== 'missed' && layer !== 'trigger') || !part) continue;
    const said = liveText(part, secret);
    live += said;
    const ofLive = liveTokens(part, said);
    tokens[layer] += size - ofLive;
    tokens.live += ofLive;
    const before = texts[layer].length > 0 ? ['\n'] : [];
    texts[layer].push(...before, withoutLive(message.content, said), imagesText(imagesIn(part)));
  }
  const hashes = {
    missed: yield* hashSteps(texts.missed),
    trigger: yield* hashSteps(texts.trigger),
    live: yield* hashSteps([live]),
  };
  return { chainBefore, tokens, hashes };
}
