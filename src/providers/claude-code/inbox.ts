/** A queue that one reader waits at. */
export interface Inbox<T> extends AsyncIterable<T> {
  put(item: T): void;
  end(): void;
}

export function createInbox<T>(): Inbox<T> {
  const items: T[] = [];
  let ended = false;
  let news = Promise.withResolvers<void>();
  return {
    put(item) {
      items.push(item);
      news.resolve();
    },
    end() {
      ended = true;
      news.resolve();
    },
    async *[Symbol.asyncIterator]() {
      while (true) {
        yield* items.splice(0);
        if (ended) return;
        await news.promise;
        news = Promise.withResolvers<void>();
      }
    },
  };
}
