/**
 * The embedder port: texts in, vectors out, for search by meaning.
 * - One vector per text, in order, all of one length across calls. Every text has a vector, even an empty one. No
 *   texts, no request.
 * - A text longer than the model's limit is cut, never refused.
 * - A failure rejects with a TroupeError of a provider code, or `aborted` when `signal` aborts.
 * - Adapters never retry: the caller decides that.
 */
export interface Embedder {
  readonly name: string;
  readonly model: string;
  embed(texts: readonly string[], options: { signal: AbortSignal }): Promise<readonly (readonly number[])[]>;
}
