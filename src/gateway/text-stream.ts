/**
 * Text as the body of a response, pulled at the speed of its reader: nothing piles up for a slow one. `onCancel` runs
 * when the reader has gone; it must let a waiting source end, because `return` waits for its next yield.
 */
export function textStream(source: AsyncGenerator<string, void>, onCancel?: () => void): ReadableStream {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await source.next();
        if (next.done) controller.close();
        else controller.enqueue(encoder.encode(next.value));
      },
      async cancel() {
        onCancel?.();
        await source.return();
      },
    },
    { highWaterMark: 0 },
  );
}
