import type { StandardSchema } from './troupe.ts';

/** A matcher of the test runner, such as `expect.stringContaining('…')`. */
export interface Asymmetric {
  /** Whether the value matches. */
  asymmetricMatch(value: unknown): boolean;
  /** Its words in reports. */
  toString(): string;
}

/** An agent or a person: an id or a name, a regular expression on either, or a matcher. */
export type Who = string | RegExp | Asymmetric;

/**
 * Words: a part of them, a regular expression, a matcher, or a schema of zod or another library of Standard Schema. A schema reads the data of the words: of a reply
 * with a schema, else of words that are JSON.
 */
export type What = string | RegExp | StandardSchema | Asymmetric;

/**
 * Arguments of a call: as for words, or an object whose fields must be there. In it a text stands for exactly this text, and
 * a regular expression, a schema or a matcher for what it matches; further fields are allowed.
 */
export type Args = What | { readonly [field: string]: unknown };

/** Somebody in the log. */
export interface Named {
  /** Id of the agent or the person. */
  id: string;
  /** Name for people. */
  name: string;
}

export function isWho(who: Who, { id, name }: Named): boolean {
  if (typeof who === 'string') return who === id || who === name;
  return matches(who, id) || matches(who, name);
}

/** `data`: what the words are as data, if that is known. */
export function isWhat(what: What, words: string, data: unknown = parsed(words)): boolean {
  if (typeof what === 'string') return words.includes(what);
  if (isSchema(what)) return data !== undefined && accepts(what, data);
  return matches(what, words);
}

/** `text`: arguments as the model wrote them. */
export function areArgs(args: Args, text: string): boolean {
  if (isPlain(args)) return contains(args, parsed(text));
  return isWhat(args, text);
}

/** The words of a pattern in a report. */
export function patternWords(pattern: unknown): string {
  if (typeof pattern === 'string') return JSON.stringify(pattern);
  if (pattern instanceof RegExp) return String(pattern);
  if (isSchema(pattern)) return `what a schema of ${pattern['~standard'].vendor} accepts`;
  if (isAsymmetric(pattern)) return String(pattern);
  if (isPlain(pattern)) {
    const fields = Object.entries(pattern).map(([name, value]) => `${name}: ${patternWords(value)}`);
    return `{ ${fields.join(', ')} }`;
  }
  if (Array.isArray(pattern)) return `[${pattern.map(patternWords).join(', ')}]`;
  return JSON.stringify(pattern) ?? String(pattern);
}

export function whoWords(who: Who): string {
  return typeof who === 'string' ? who : patternWords(who);
}

function accepts(schema: StandardSchema, value: unknown): boolean {
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise) throw new TypeError('a schema of a matcher may not be asynchronous');
  return result.issues === undefined;
}

function matches(pattern: RegExp | Asymmetric | StandardSchema, value: unknown): boolean {
  if (pattern instanceof RegExp) return typeof value === 'string' && value.search(pattern) >= 0;
  if (isSchema(pattern)) return accepts(pattern, value);
  return pattern.asymmetricMatch(value);
}

function contains(expected: unknown, value: unknown): boolean {
  if (expected instanceof RegExp || isSchema(expected) || isAsymmetric(expected))
    return matches(expected, value);
  if (Array.isArray(expected)) {
    if (!Array.isArray(value) || value.length !== expected.length) return false;
    return expected.every((item, at) => contains(item, value[at]));
  }
  if (isPlain(expected)) {
    if (typeof value !== 'object' || value === null) return false;
    const fields = value as Record<string, unknown>;
    return Object.entries(expected).every(([name, item]) => contains(item, fields[name]));
  }
  return Object.is(expected, value);
}

/** Some libraries make schemas that are functions. */
function isSchema(pattern: unknown): pattern is StandardSchema {
  return '~standard' in Object(pattern);
}

function isAsymmetric(pattern: unknown): pattern is Asymmetric {
  return typeof (pattern as Partial<Asymmetric> | null)?.asymmetricMatch === 'function';
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !(value instanceof RegExp) && !isSchema(value) && !isAsymmetric(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Most words are no JSON.
    return undefined;
  }
}
