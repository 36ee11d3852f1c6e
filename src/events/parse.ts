import * as z from 'zod';
import { type ErrorCode, TroupeError } from '../base/errors.ts';
import { inputProblems, inputWords } from './input-words.ts';

/**
 * Parses an input that errors call `name`, such as "the key". Throws an error of this code that names every problem; its
 * `data` has them too, and the first path.
 */
export function parseGiven<S extends z.ZodType>(
  schema: S,
  input: unknown,
  name: string,
  code: ErrorCode = 'config_invalid',
): z.output<S> {
  const parsed = tryParse(schema, input);
  if (parsed.success) return parsed.data;
  const problems = problemsIn(parsed.error);
  throw new TroupeError(code, problemText(problems, name), { path: problems[0]?.path ?? '', problems });
}

/** The same for the options of a method, which every error names. */
export function checkOptions(schema: z.ZodType, options: unknown, method: string, code: ErrorCode): void {
  const parsed = tryParse(schema, options);
  if (parsed.success) return;
  const problems = problemsIn(parsed.error);
  const message = `the options of ${method}: ${problemText(problems, 'they')}`;
  throw new TroupeError(code, message, { path: problems[0]?.path ?? '', problems });
}

/** Most problems that an error names, and the most characters of a path. */
const MAX_PROBLEMS = 20;
const MAX_PATH = 200;

interface PlacedProblem {
  /** Names and numbers with dots between them. '': the input itself. */
  path: string;
  message: string;
}

export function problemsIn({ issues }: z.ZodError): PlacedProblem[] {
  return issues
    .slice(0, MAX_PROBLEMS)
    .flatMap(inputProblems)
    .slice(0, MAX_PROBLEMS)
    .map(({ path, message }) => ({ path: path.map(String).join('.').slice(0, MAX_PATH), message }));
}

/** `whole`: the name of the input itself. */
export function problemText(problems: readonly PlacedProblem[], whole: string): string {
  return problems.map(({ path, message }) => `${path || whole}: ${message}`).join('; ');
}

/**
 * `safeParse` for input from outside, with problems in words. Zod compares every `length` with a number, even of an object
 * in place of a text or a list. `{"length":{"toString":1}}` cannot become a number, and the comparison throws a `TypeError`.
 */
export function tryParse<S extends z.ZodType>(schema: S, input: unknown): z.ZodSafeParseResult<z.output<S>> {
  try {
    return schema.safeParse(input, { error: inputWords, reportInput: true });
  } catch (thrown) {
    if (!(thrown instanceof TypeError && NO_NUMBER.test(thrown.message))) throw thrown;
    const message = 'has an object with a "length" in place of a text or a list';
    const error = new z.ZodError([{ code: 'custom', path: [], message, input: null }]);
    return { success: false, error: error as z.ZodError<z.output<S>> };
  }
}

const NO_NUMBER = /^Cannot convert object to primitive value/;
