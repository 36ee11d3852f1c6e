import type { Context } from 'hono';
import { callerOf } from './access/caller.ts';

/** Largest answer; longer lists continue in the next one. */
export const ANSWER_BYTES = 4 * 1024 * 1024;

/** Characters serialized in one go, which takes some milliseconds. */
const SLICE_BYTES = 256 * 1024;
/** Largest text of an item in code units, and the largest number of source events. */
const TEXT_LENGTH = 1024 * 1024;
const MOST_SEQS = 10_000;

/**
 * An answer with part of a long list: the items after `skip` up to `ANSWER_BYTES`, and `next` for the following part, null
 * at the end. An item with a very long text has its beginning, and `truncated` is its full length. The bytes written are
 * charged to the caller, as reads are.
 */
export async function answerPage<K extends string, T extends Record<K, readonly unknown[]>>(
  context: Context,
  answer: T,
  name: K,
  skip: number,
): Promise<Response> {
  const { reading, traffic } = callerOf(context);
  const { [name]: list, ...rest } = answer;
  const items: string[] = [];
  let bytes = 0;
  let slice = 0;
  for (let index = skip; index < list.length && bytes < ANSWER_BYTES; index += 1) {
    const item = JSON.stringify(shortened(list[index]));
    items.push(item);
    const size = Buffer.byteLength(item);
    bytes += size;
    slice += size;
    if (slice < SLICE_BYTES) continue;
    slice = 0;
    await traffic.slices.next();
  }
  const end = skip + items.length;
  const next = end < list.length ? end : null;
  // The head has at least `next`, so the list can follow after a comma.
  const head = JSON.stringify({ ...rest, next }).slice(0, -1);
  await reading?.charge(bytes / 1_024);
  const text = `${head},${JSON.stringify(name)}:[${items.join(',')}]}`;
  return context.body(text, 200, { 'content-type': 'application/json' });
}

/** Shortens an item: consecutive messages of many people form one prompt message of any length. */
function shortened(item: unknown): unknown {
  if (typeof item !== 'object' || item === null || !('content' in item)) return item;
  const { content } = item;
  if (typeof content !== 'string' || content.length <= TEXT_LENGTH) return item;
  const seqs = 'seqs' in item && Array.isArray(item.seqs) ? { seqs: item.seqs.slice(0, MOST_SEQS) } : {};
  return { ...item, ...seqs, content: content.slice(0, TEXT_LENGTH), truncated: content.length };
}
