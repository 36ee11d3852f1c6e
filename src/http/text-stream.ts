export interface TextStreamOptions {
  /** Runs when the reader has gone; it must let a waiting source end, because `return` waits for its next yield. */
  onCancel?: (() => void) | undefined;
  /** Aborts when nothing more may be told; a waiting source must then end by itself. */
  ends?: AbortSignal | undefined;
  /** Runs where `ends` aborts while nobody is waiting for more: such a reader may never learn of the end. */
  onUnread?: (() => void) | undefined;
}

/** Text as the body of a response, pulled at the speed of its reader: nothing piles up for a slow one. */
export function textStream(
  source: AsyncGenerator<string, void>,
  { onCancel, ends, onUnread }: TextStreamOptions = {},
): ReadableStream {
  const encoder = new TextEncoder();
  let isPulling = false;
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        ends?.addEventListener(
          'abort',
          () => {
            if (isPulling || isOver) return;
            isOver = true;
            controller.close();
            void source.return();
            onUnread?.();
          },
          { once: true },
        );
      },
      async pull(controller) {
        isPulling = true;
        const next = await source.next();
        isPulling = false;
        if (isOver) return;
        if (!next.done && !ends?.aborted) return controller.enqueue(encoder.encode(next.value));
        isOver = true;
        controller.close();
        await source.return();
      },
      async cancel() {
        isOver = true;
        onCancel?.();
        await source.return();
      },
    },
    { highWaterMark: 0 },
  );
}
