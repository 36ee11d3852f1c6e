import * as z from 'zod';
import { type ErrorCode, TroupeError } from '../base/errors.ts';

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

/** Checks the options of a method, which errors name. Throws as `parseGiven` does. */
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

type RawIssue = z.core.$ZodRawIssue;

/** What a field takes, by zod's name of the type. */
const TAKES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false, without quotes',
  array: 'a list: [ … ]',
  object: 'an object: { … }',
  record: 'an object: { … }',
  function: 'a function',
};

/** Longest value that is repeated in an error, in characters. */
const QUOTED = 60;

/**
 * Describes a rejected value from outside, and what to give instead. For `tryParse`; a schema's own messages take
 * precedence. Undefined: zod's message stays.
 */
export function inputWords(issue: RawIssue): string | undefined {
  const { input } = issue;
  switch (issue.code) {
    case 'invalid_type':
      return input === undefined ? 'is missing' : `is ${named(input)}: give ${typeWords(issue.expected)}`;
    case 'invalid_value':
      return notAmong(input, issue.values);
    case 'invalid_union':
      return unionWords(issue);
    case 'unrecognized_keys':
      return unknownKeys(issue)
        .map((key) => notAField(key, fieldsOf(issue)))
        .join('\n');
    case 'too_small':
      return sizeWords(input, issue.inclusive ? 'at least' : 'more than', issue.minimum);
    case 'too_big':
      return sizeWords(input, issue.inclusive ? 'at most' : 'less than', issue.maximum);
    case 'invalid_format':
    case 'invalid_key':
    case 'invalid_element':
    case 'not_multiple_of':
    case 'custom':
      return undefined;
  }
}

interface InputProblem {
  path: PropertyKey[];
  message: string;
}

/** The problems of one issue, whose message `inputWords` wrote: an unknown field each is a problem of its own. */
export function inputProblems({ path, message, ...issue }: z.core.$ZodIssue): InputProblem[] {
  if (issue.code !== 'unrecognized_keys') return [{ path, message }];
  const words = message.split('\n');
  return unknownKeys(issue).map((key, n) => ({ path: [...path, key], message: words[n] ?? message }));
}

/** Most unknown fields of an object that are named. A request may have as many as fit into it. */
const MOST_UNKNOWN = 20;

function unknownKeys({ keys }: { readonly keys: readonly string[] }): readonly string[] {
  return keys.slice(0, MOST_UNKNOWN);
}

/** Most fields that are listed if no name is near the typed one. */
const LISTED = 12;

/** The words for an unknown field. */
export function notAField(field: string, known: readonly string[]): string {
  const nearest = nearestName(field, known);
  if (nearest) return `is not a field; did you mean "${nearest}"?`;
  const isShort = known.length > 0 && known.length <= LISTED;
  return `is not a field${isShort ? `; there are ${known.join(', ')}` : ''}`;
}

/** Maximum number of names in one message. */
const KNOWN_SHOWN = 50;

/** The words for an unknown name, with the nearest known one and a list of the known ones. */
export function unknownName(what: string, typed: string, known: readonly string[]): string {
  const nearest = nearestName(typed, known);
  const more = known.length > KNOWN_SHOWN ? `, and ${known.length - KNOWN_SHOWN} more` : '';
  const list = known.length > 0 ? `${known.slice(0, KNOWN_SHOWN).join(', ')}${more}` : 'none';
  return `${what};${nearest === null ? '' : ` did you mean "${nearest}"?`} known: ${list}`;
}

function fieldsOf({ inst }: RawIssue): string[] {
  const shape = (inst as { _zod?: { def?: { shape?: object } } } | undefined)?._zod?.def?.shape;
  return Object.keys(shape ?? {});
}

function typeWords(expected: string): string {
  return TAKES[expected] ?? `a value of the type ${expected}`;
}

/** A value in a few words. Values of secrets are texts, and texts are not repeated. */
function named(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'string') return 'a text';
  if (typeof value === 'object') return 'an object';
  const isPlain = typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint';
  return isPlain ? String(value) : `a ${typeof value}`;
}

function notAmong(input: unknown, values: readonly unknown[]): string {
  const list = values.map((value) => JSON.stringify(value)).join(', ');
  const options = values.length === 1 ? list : `one of ${list}`;
  if (input === undefined) return `is missing: give ${options}`;
  const names = values.filter((value) => typeof value === 'string');
  const nearest = typeof input === 'string' ? nearestName(input.slice(0, QUOTED), names) : null;
  const hint = nearest ? `; did you mean "${nearest}"?` : '';
  return `is ${quoted(input)}: give ${options}${hint}`;
}

function quoted(value: unknown): string {
  return typeof value === 'string' && value.length <= QUOTED ? JSON.stringify(value) : named(value);
}

function unionWords(issue: Extract<RawIssue, { code: 'invalid_union' }>): string | undefined {
  const { input } = issue;
  if (input === undefined) return 'is missing';
  const { discriminator, options } = issue as { discriminator?: string; options?: unknown[] };
  if (discriminator !== undefined && options)
    return notAmong((input as Record<string, unknown> | null)?.[discriminator], options);
  // The alternative that takes this type of value says what is wrong inside.
  const [best, ...others] = issue.errors.filter(([first]) => first && isInside(first));
  const [problem] = best ?? [];
  if (!problem) return otherType(issue);
  if (others.length > 0) return undefined;
  const [{ path, message } = problem] = inputProblems(problem);
  return `${path.join('.')}: ${message}`;
}

/** The words for a value whose type no alternative accepts. */
function otherType({ input, errors }: Extract<RawIssue, { code: 'invalid_union' }>): string | undefined {
  const taken = errors.map(([first]) => (first?.code === 'invalid_type' ? typeWords(first.expected) : null));
  return taken.includes(null) ? undefined : `is ${named(input)}: give ${[...new Set(taken)].join(', or ')}`;
}

function isInside({ path, code }: z.core.$ZodIssue): boolean {
  return path.length > 0 || code === 'unrecognized_keys';
}

function sizeWords(input: unknown, bound: string, size: number | bigint): string {
  if (typeof input === 'number' || typeof input === 'bigint') return `is ${input}: give ${bound} ${size}`;
  const [what, length] = Array.isArray(input)
    ? ['entries', input.length]
    : ['characters', typeof input === 'string' ? input.length : null];
  return `${length === null ? 'has the wrong size' : `has ${length} ${what}`}: give ${bound} ${size}`;
}

/** The known id closest to a mistyped one. Null if over a third of the characters, or over half of a short id, differ. */
export function nearestName(typed: string, known: Iterable<string>): string | null {
  const wanted = typed.toLowerCase();
  let best: string | null = null;
  let least = Math.max(2, Math.ceil(typed.length / 3)) + 1;
  for (const candidate of known) {
    const name = candidate.toLowerCase();
    // The difference in length is the least distance. Without this check, a long text would be compared with every
    // name.
    if (Math.abs(wanted.length - name.length) >= least) continue;
    const distance = editDistance(wanted, name);
    const isNear = distance * 2 <= Math.max(wanted.length, name.length);
    if (distance < least && isNear) [best, least] = [candidate, distance];
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
