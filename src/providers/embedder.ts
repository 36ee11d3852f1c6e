/**
 * The embedder port: texts in, vectors out, for finding what was said by its meaning.
 * - One vector for every text, in their order, all of one length, also from call to call; any text has one, the empty
 *   one too. No texts: no request.
 * - What is longer than the model takes is cut, never refused.
 * - A failure rejects with a TroupeError of a provider code; when `signal` aborts, with `aborted`.
 * - Adapters never retry: that and when to give up is the caller's.
 */
export interface Embedder {
  readonly name: string;
  readonly model: string;
  embed(texts: readonly string[], options: { signal: AbortSignal }): Promise<readonly (readonly number[])[]>;
}
