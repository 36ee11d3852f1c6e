import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { CONCURRENCY, dropKeys, newPrefix, REDIS_URL } from './stage.ts';

/**
 * The floor: BullMQ alone, with a processor that does nothing. Its jobs are like the router's: deduplicated per key
 * with `keepLastIfActive`, small, and removed when they are done.
 */
export interface RawQueue {
  /** Resolves when the job is in the queue; `ended` resolves when it was processed. */
  add(key: string): Promise<{ ended: Promise<void> }>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function openRawQueue(onTaken: (key: string) => void = () => {}): Promise<RawQueue> {
  const prefix = newPrefix();
  const ended = new Map<string, () => void>();
  const producer = new Redis(REDIS_URL);
  const blocking = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
  const options = { prefix: `{${prefix}}` };
  const queue = new Queue<{ conversation: string }>('raw', { ...options, connection: producer });
  const worker = new Worker<{ conversation: string }>('raw', async ({ data }) => onTaken(data.conversation), {
    ...options,
    connection: blocking,
    concurrency: CONCURRENCY,
  });
  worker.on('completed', ({ data }) => ended.get(data.conversation)?.());
  worker.on('error', (error) => {
    throw error;
  });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  return {
    async add(conversation) {
      const done = new Promise<void>((resolve) => ended.set(conversation, resolve));
      await queue.add(
        'wake',
        { conversation },
        { deduplication: { id: conversation, keepLastIfActive: true }, removeOnComplete: true },
      );
      return { ended: done };
    },
    async [Symbol.asyncDispose]() {
      await worker.close();
      await queue.close();
      producer.disconnect();
      blocking.disconnect();
      await dropKeys(prefix);
    },
  };
}
