import * as z from 'zod';
import { TroupeError } from '../errors.ts';

/** Parses an input that errors call `name`, such as "the key". Throws `config_invalid` with every problem and its path. */
export function parseGiven<T>(schema: z.ZodType<T>, input: unknown, name: string): T {
  const parsed = tryParse(schema, input);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }));
  const message = problems.map(({ path, message }) => `${path || name}: ${message}`).join('; ');
  throw new TroupeError('config_invalid', message, { problems });
}

/**
 * `safeParse` for input from outside. Zod compares every `length` with a number, even of an object in place of a text or
 * a list. `{"length":{"toString":1}}` cannot become a number, and the comparison throws a `TypeError`.
 */
export function tryParse<T>(
  schema: z.ZodType<T>,
  input: unknown,
  options?: z.core.ParseContext<z.core.$ZodIssue>,
): z.ZodSafeParseResult<T> {
  try {
    return schema.safeParse(input, options);
  } catch (thrown) {
    if (!(thrown instanceof TypeError && NO_NUMBER.test(thrown.message))) throw thrown;
    const message = 'has an object with a "length" in place of a text or a list';
    const error = new z.ZodError([{ code: 'custom', path: [], message, input: null }]);
    return { success: false, error: error as z.ZodError<T> };
  }
}

const NO_NUMBER = /^Cannot convert object to primitive value/;

/** The known id closest to a mistyped one, or null if more than a third of the characters would have to change. */
export function nearestName(typed: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let least = Math.max(2, Math.ceil(typed.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(typed.toLowerCase(), candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replace = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current[column] = Math.min(replace, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
