/** What was opened, to be closed in the reverse order. As `AsyncDisposableStack`, which Node 22 does not have. */
export class ResourceStack {
  readonly #closers: (() => unknown)[] = [];

  defer(close: () => unknown): void {
    this.#closers.push(close);
  }

  use<R extends AsyncDisposable>(resource: R): R {
    this.defer(() => resource[Symbol.asyncDispose]());
    return resource;
  }

  /** Closes everything once, also after a failure. Throws the first one. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) {
      try {
        await close();
      } catch (failure) {
        failures.push(failure);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
