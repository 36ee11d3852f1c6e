/** Opened resources, which are closed in the reverse order. Like `AsyncDisposableStack`, which Node 22 does not have. */
export class ResourceStack {
  readonly #closers: (() => unknown)[] = [];

  defer(close: () => unknown): void {
    this.#closers.push(close);
  }

  use<R extends AsyncDisposable>(resource: R): R {
    this.defer(() => resource[Symbol.asyncDispose]());
    return resource;
  }

  /** Closes everything once, also after a failure. Throws the failure, or an `AggregateError` of several. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) {
      try {
        await close();
      } catch (failure) {
        failures.push(failure);
      }
    }
    if (failures.length > 1) {
      const texts = failures.map((failure) => (failure instanceof Error ? failure.message : String(failure)));
      throw new AggregateError(failures, `${failures.length} parts could not be closed: ${texts.join('; ')}`);
    }
    if (failures.length === 1) throw failures[0];
  }
}
