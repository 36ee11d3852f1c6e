/**
 * The embedder port: texts in, vectors out, for search by meaning.
 * - One vector per text, in order, all of one length across calls. Every text has a vector, even an empty one. No
 *   texts, no request.
 * - A text longer than the model's limit is cut, never refused.
 * - A failure rejects with a TroupeError of a provider code, or `aborted` when `signal` aborts.
 * - Adapters never retry: the caller decides that.
 */
export interface Embedder {
  /** Shown to people and in metrics. */
  readonly name: string;
  /** Name of the model. */
  readonly model: string;
  /** The vectors of texts, in their order. */
  embed(texts: readonly string[], options: { signal: AbortSignal }): Promise<readonly (readonly number[])[]>;
}
