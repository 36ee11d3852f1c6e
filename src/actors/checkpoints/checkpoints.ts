import type { Clock } from '../../base/clock.ts';
import { slicesOf } from '../../base/slices.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import type { Checkpoints, Loaded, Place } from '../log/checkpoints.ts';
import { readText, writeText } from './checkpoint-text.ts';
import { pack, unpack } from './pack.ts';

export interface CheckpointDeps {
  store: Pick<Store, 'putDerived' | 'readDerived' | 'derivedKeys' | 'removeDerived' | 'markOf'>;
  clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>;
  /** Release of this code: a fold of another one is not used. */
  release: string;
  /** Default 64: fewer events are read in a few milliseconds. */
  least?: number;
  onWarning: (error: unknown, where: string) => void;
}

/** The newest, and the one before it in case the newest cannot be used. */
const KEPT = 2;
const LEAST_EVENTS = 64;
/** Longer than the rest of a turn on a fast machine, ms. */
const BEHIND_MS = 250;
/** Most that wait to be written. */
const MOST_WAITING = 64;

interface Waiting extends Place {
  log: ConversationKey;
  subject: string;
  parts: readonly unknown[];
}

/**
 * Stored folds of logs, so that a process that opens a long conversation reads its end only.
 *
 * Owns what is stored, for how long, and whether it may be used. Does not own the folds: `parts` are any plain data.
 *  C1  A checkpoint is a cache. Missing, damaged, of another version or of another log, it is skipped, and the caller
 *      reads on from an older one or from the first event. What a fold gives never depends on it.
 *  C2  `parts` hold the events up to `seq` and nothing else: no draft, no running turn, no secret.
 *  C3  It is written behind the work that made it: after a pause, one part at a time, when the event loop is idle. A
 *      failure costs a warning. Who waits for too many others is dropped.
 *  C4  After each write a subject has at most `KEPT` checkpoints; the oldest goes. All go with their conversation, also those that are
 *      written while it is deleted: the mark of their event is gone.
 *  C5  `load` returns nothing beyond `upTo`: a resumed turn must not see what came after it was pinned.
 */
export function createCheckpoints(deps: CheckpointDeps): Checkpoints {
  const { store, least = LEAST_EVENTS, onWarning } = deps;

  /** A checkpoint is not worth an error. */
  async function guarded<T>(subject: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      onWarning(error, `checkpoint of ${subject}`);
      return null;
    }
  }

  return {
    least,
    load: (log, subject, { upTo = Infinity } = {}) =>
      guarded(subject, async () => {
        const keys = await store.derivedKeys(log, prefixOf(subject));
        for (const key of keys.toReversed()) {
          const seq = Number(key.slice(prefixOf(subject).length));
          const loaded = seq <= upTo ? await loadOne(deps, log, { subject, seq }) : null;
          if (loaded) return loaded;
        }
        return null;
      }),
    mark: (log, seq) =>
      guarded('a log', async () => {
        const mark = await store.markOf(log, seq);
        return mark === null ? null : { seq, mark };
      }),
    ...createWriting(deps),
  };
}

async function loadOne(
  { store, clock, release }: CheckpointDeps,
  log: ConversationKey,
  { subject, seq }: { subject: string; seq: number },
): Promise<Loaded | null> {
  const key = keyOf(subject, seq);
  const [text = null] = await store.readDerived(log, [key]);
  if (text === null) return null;
  const found = readText(release, { log, subject, seq }, text);
  if (found.kind === 'other') return null;
  if (found.kind === 'read' && found.mark === (await store.markOf(log, seq))) {
    const parts = await unpackParts(clock, found.lines);
    if (parts) return { seq, parts };
  }
  await store.removeDerived(log, [key]);
  return null;
}

/** Parts that are unpacked at once: a few milliseconds. */
const AT_ONCE = 5;

/** Null if they are damaged. The hash is no signature: whoever wrote them may have made it fit. */
async function unpackParts(
  clock: CheckpointDeps['clock'],
  lines: readonly string[],
): Promise<unknown[] | null> {
  const parts: unknown[] = [];
  for (const line of lines) {
    if (parts.length > 0 && parts.length % AT_ONCE === 0) await slicesOf(clock).next();
    try {
      parts.push(unpack(line));
    } catch {
      return null;
    }
  }
  return parts;
}

function createWriting(deps: CheckpointDeps): Pick<Checkpoints, 'save' | 'flush'> {
  const { clock, onWarning } = deps;
  /** By log and subject: a newer one replaces one that waits. */
  const waiting = new Map<string, Waiting>();
  let writing: Promise<void> | null = null;
  let pause = new AbortController();

  async function writeAll(): Promise<void> {
    await clock.sleep(BEHIND_MS, pause.signal);
    for (const [key, each] of waiting) {
      waiting.delete(key);
      await write(deps, each).catch((error: unknown) => onWarning(error, `checkpoint of ${each.subject}`));
    }
    // At once, so that one that is queued from now on begins another round.
    writing = null;
  }

  return {
    save(log, subject, place, parts) {
      const key = `${log.tenant}/${log.conversation}/${subject}`;
      if (!waiting.has(key) && waiting.size >= MOST_WAITING) return;
      waiting.set(key, { log, subject, ...place, parts });
      writing ??= writeAll();
    },
    async flush() {
      pause.abort();
      await writing;
      pause = new AbortController();
    },
  };
}

async function write(
  { store, clock, release }: CheckpointDeps,
  { log, subject, seq, mark, parts }: Waiting,
): Promise<void> {
  const lines: string[] = [];
  for (const part of parts) {
    await slicesOf(clock).next();
    lines.push(pack(part));
  }
  const key = keyOf(subject, seq);
  await store.putDerived(log, key, writeText(release, { log, subject, seq, mark }, lines), clock.now());
  const others = (await store.derivedKeys(log, prefixOf(subject))).filter((each) => each !== key);
  const old = others.slice(0, 1 - KEPT);
  // The conversation may have been deleted while it was written.
  const isGone = (await store.markOf(log, seq)) !== mark;
  if (isGone) old.push(key);
  if (old.length > 0) await store.removeDerived(log, old);
}

/** Digits of a seq in a key, so that keys and seqs have the same order. */
const SEQ_DIGITS = 16;

function prefixOf(subject: string): string {
  return `checkpoint/${subject}/`;
}

function keyOf(subject: string, seq: number): string {
  return `${prefixOf(subject)}${String(seq).padStart(SEQ_DIGITS, '0')}`;
}
