interface TextStreamOptions {
  /** Runs when the reader has left; it must end a waiting source, because `return` waits for the next yield. */
  onCancel?: (() => void) | undefined;
  /** Aborts when nothing more may be sent; a waiting source must then end by itself. */
  ends?: AbortSignal | undefined;
  /** Runs if `ends` aborts while no read is pending: such a reader may never notice the end. */
  onUnread?: (() => void) | undefined;
}

/** Text as a response body, produced at the speed of its reader: nothing accumulates for a slow one. */
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
