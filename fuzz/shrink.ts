/**
 * Finds a smaller input with the same failure: omits parts and halves texts and lists as long as one of the tries
 * still fails. Greedy: the result is small, not minimal.
 */
const MOST_TRIES = 600;

export async function shrink<T>(
  input: T,
  fails: (input: T) => Promise<boolean>,
  keepKeys = false,
): Promise<T> {
  let best = input;
  let tries = 0;
  for (let found = true; found && tries < MOST_TRIES;) {
    found = false;
    for (const smaller of smallerInput(best, keepKeys) as Generator<T>) {
      if ((tries += 1) > MOST_TRIES) break;
      if (!(await fails(smaller))) continue;
      best = smaller;
      found = true;
      break;
    }
  }
  return best;
}

/** The target reads the fields of an input, so they shrink but are not removed. */
function* smallerInput(input: unknown, keepKeys: boolean): Generator<unknown> {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return yield* smallerOf(input, keepKeys);
  for (const [key, item] of Object.entries(input)) {
    for (const smaller of smallerOf(item, keepKeys)) yield { ...input, [key]: smaller };
  }
}

function* smallerOf(value: unknown, keepKeys: boolean): Generator<unknown> {
  if (typeof value === 'string') {
    for (const [from, to] of cuts(value.length)) yield value.slice(0, from) + value.slice(to);
  } else if (Array.isArray(value)) {
    const items = value as unknown[];
    for (const [from, to] of cuts(items.length)) yield [...items.slice(0, from), ...items.slice(to)];
    for (const [index, item] of items.entries()) {
      for (const smaller of smallerOf(item, keepKeys)) yield items.with(index, smaller);
    }
  } else if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    const keys = keepKeys ? [] : Object.keys(value);
    for (const key of keys) yield Object.fromEntries(entries.filter(([name]) => name !== key));
    for (const [index, [key, item]] of entries.entries()) {
      for (const smaller of smallerOf(item, keepKeys))
        yield Object.fromEntries(entries.with(index, [key, smaller]));
    }
  }
}

/** Halves first, then ever smaller pieces, down to single items if there are not too many. */
function* cuts(length: number): Generator<[from: number, to: number]> {
  for (let size = Math.ceil(length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 4)) {
    if (length / size > 64) return;
    for (let from = 0; from < length; from += size) yield [from, Math.min(length, from + size)];
  }
}
