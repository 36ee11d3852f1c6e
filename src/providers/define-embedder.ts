import { TroupeError } from '../base/errors.ts';
import { boundedFetch } from './define-provider.ts';
import type { Embedder } from './embedder.ts';
import { guardedEmbedder } from './guard-embedder.ts';

/** A model for vectors that a program brings. */
export interface EmbedderDefinition {
  /** Shown to people and in errors. */
  name: string;
  /** Name of the model. */
  model: string;
  /** Removed from the messages of errors: keys, which vendors may repeat. */
  secrets?: readonly string[] | undefined;
  /** Time for one call of `read`, in ms. Default 30,000. */
  timeoutMs?: number | undefined;
  /** Most texts of one call. Default and most: 96. */
  maxTexts?: number | undefined;
  /**
   * One vector for each text, in their order, all of one length. The texts are never empty, and cut to 24,000 bytes. What it
   * throws is the failure of the call, by `status` and `headers` as for `defineProvider`. `fetch` is bounded.
   */
  read(
    texts: readonly string[],
    call: { signal: AbortSignal; fetch: typeof fetch },
  ): PromiseLike<readonly (readonly number[])[]>;
}

/**
 * An embedder of a program's own, for `context: { embedder: { provider: 'custom', embedder: mine } }`.
 *
 *     const mine = defineEmbedder({ name: 'mine', model: 'small', read: (texts) => vectorsOf(texts) });
 */
export function defineEmbedder(definition: EmbedderDefinition): Embedder {
  const { name, model, secrets, timeoutMs, maxTexts } = definition;
  if (typeof definition.read !== 'function')
    throw new TroupeError(
      'config_invalid',
      `the embedder "${name}" needs read: async (texts, { signal }) => vectors`,
    );
  const fetch = boundedFetch();
  return guardedEmbedder({
    name,
    model,
    secrets,
    timeoutMs,
    ...(maxTexts !== undefined && { maxInputs: () => Promise.resolve(maxTexts) }),
    read: (texts, signal) => definition.read(texts, { signal, fetch }),
  });
}
