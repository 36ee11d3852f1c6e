import type { Context } from 'hono';
import { callerOf } from './access/caller.ts';

/** Of one answer: what is longer goes on with the next. */
export const ANSWER_BYTES = 4 * 1024 * 1024;

/** Written in one go, some milliseconds. */
const SLICE_BYTES = 256 * 1024;
/** Of one text, in code units; and events that are named as its source. */
const TEXT_LENGTH = 1024 * 1024;
const MOST_SEQS = 10_000;

/**
 * An answer with a list that may be long: the part of it behind `skip`, until it is `ANSWER_BYTES`, and `next` for the one
 * behind that, null at the end. Of an item whose text is too long by itself the beginning is there, and `truncated` says
 * how long it is. What is written is charged, like what is read.
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
  // It has at least `next`, so that a list can stand behind a comma.
  const head = JSON.stringify({ ...rest, next }).slice(0, -1);
  await reading?.charge(bytes / 1_024);
  const text = `${head},${JSON.stringify(name)}:[${items.join(',')}]}`;
  return context.body(text, 200, { 'content-type': 'application/json' });
}

/** Words of many people who spoke one after the other are one message of a prompt, as long as they are. */
function shortened(item: unknown): unknown {
  if (typeof item !== 'object' || item === null || !('content' in item)) return item;
  const { content } = item;
  if (typeof content !== 'string' || content.length <= TEXT_LENGTH) return item;
  const seqs = 'seqs' in item && Array.isArray(item.seqs) ? { seqs: item.seqs.slice(0, MOST_SEQS) } : {};
  return { ...item, ...seqs, content: content.slice(0, TEXT_LENGTH), truncated: content.length };
}
