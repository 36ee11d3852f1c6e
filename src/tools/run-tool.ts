import * as z from 'zod';
import type { Clock } from '../base/clock.ts';
import { exactInteger, findExactInteger, parseExact, type ToolCall } from '../events/index.ts';
import { firstProblems } from './schema.ts';
import { type Tool, type ToolContext, ToolRequest } from './tool.ts';

interface ToolRun {
  outcome: 'done' | 'failed';
  /** The text shown to the model. */
  text: string;
  request?: ToolRequest;
}

/**
 * Runs one call. Never throws: every failure becomes a text that the model can act on. Settles at the timeout or the abort
 * even if the tool ignores its signal; later effects of such a tool are not observed.
 */
export async function runTool(
  tool: Tool,
  call: ToolCall,
  context: ToolContext,
  { clock }: { clock: Clock },
): Promise<ToolRun> {
  const ending = new AbortController();
  const over = new AbortController();
  try {
    const signal = AbortSignal.any([context.signal, ending.signal]);
    if (signal.aborted) return failed(`${tool.name} was aborted before it started`);
    const limit = createLimit(tool, clock);
    const timeout = limit.sleep(AbortSignal.any([over.signal, context.signal]));
    const progress: ToolContext['progress'] = (report) => {
      limit.renew();
      context.progress(report);
    };
    // The check of the arguments may be asynchronous, so the timeout covers it too.
    const finished = parseAndRun(tool, call, { ...context, signal, progress });
    const result = await Promise.race([finished, timeout]);
    if (result) return result;
    const reason = context.signal.aborted ? 'was aborted' : `took longer than ${limit.spentMs()} ms`;
    ending.abort(new Error(`${tool.name} ${reason}`));
    return failed(`${tool.name} ${reason} and was stopped; whether it had an effect is not known`);
  } catch (thrown) {
    return failed(`${tool.name} failed: ${messageOf(thrown)}`);
  } finally {
    over.abort();
  }
}

/** Time limit of a call. Progress reports restart it if the tool allows that. */
function createLimit({ timeoutMs, longestMs = timeoutMs }: Tool, clock: Clock) {
  const begun = clock.monotonic();
  let renewed = begun;
  const end = () => Math.min(renewed + timeoutMs, begun + longestMs);
  return {
    renew: () => void (renewed = clock.monotonic()),
    async sleep(signal: AbortSignal): Promise<void> {
      for (let left = timeoutMs; left > 0 && !signal.aborted; left = end() - clock.monotonic())
        await clock.sleep(left, signal);
    },
    /** Time that a stopped call was given, ms: its limit, and what progress reports added to it. */
    spentMs: () => Math.round(end() - begun),
  };
}

async function parseAndRun(tool: Tool, call: ToolCall, context: ToolContext): Promise<ToolRun> {
  try {
    const args = await parseCall(tool, call);
    if ('failed' in args) return failed(args.failed);
    context.signal.throwIfAborted();
    const returned: unknown = await tool.run(args.value as never, context);
    const { text, request } = readResult(returned);
    return request ? { outcome: 'done', text, request } : { outcome: 'done', text };
  } catch (thrown) {
    return failed(`${tool.name} failed: ${messageOf(thrown)}`);
  }
}

/** The arguments in the form that `run` takes, or the reason for the model why they are invalid. */
type ParsedCall = { value: unknown } | { failed: string };

async function parseCall(tool: Tool, call: ToolCall): Promise<ParsedCall> {
  let args: unknown;
  try {
    args = parseExact(call.args.trim() || '{}');
  } catch (thrown) {
    return { failed: `the arguments of ${tool.name} are not valid JSON: ${messageOf(thrown)}` };
  }
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    return { failed: `the arguments of ${tool.name} must be a JSON object, not ${call.args.slice(0, 100)}` };
  }
  const lost = tool.takesExact ? null : findExactInteger(args, { text: call.args });
  if (lost) return { failed: `the arguments of ${tool.name} do not fit: ${tooManyDigits(lost)}` };
  const checked = await tool.check(args);
  if ('value' in checked) return checked;
  const problems = firstProblems(checked.problems).join('\n');
  return { failed: `the arguments of ${tool.name} do not fit its schema:\n${problems}` };
}

function tooManyDigits({ place, digits }: { place: string; digits: string }): string {
  return `${place}: ${digits.slice(0, 40)} is beyond 2^53 and would lose digits: give it as a text, in quotes, if the schema admits one`;
}

const NOTHING = '[the tool returned nothing]';

/**
 * A tool's return value as the model reads it. Tools may be plain JavaScript, so the value is not trusted. Throws for an
 * invalid request. `change` is applied to every text, both before JSON escapes it and afterwards.
 */
export function readResult(
  returned: unknown,
  change: (text: string) => string = (text) => text,
): { text: string; request?: ToolRequest } {
  if (returned === undefined) return { text: NOTHING };
  if (typeof returned === 'string') return { text: change(returned).toWellFormed() };
  if (!isText(returned)) return { text: dataText(returned, change) };
  const text = change(returned.text).toWellFormed();
  if (returned.request === undefined) return { text };
  const request = ToolRequest.safeParse(returned.request);
  if (request.success) return { text, request: request.data };
  throw new Error(`what it asks of the turn is not valid: ${z.prettifyError(request.error)}`);
}

/** An object with any other field is data. */
function isText(returned: unknown): returned is { text: string; request?: unknown } {
  if (typeof returned !== 'object' || returned === null) return false;
  try {
    const { text, request: _, ...more } = returned as Record<string, unknown>;
    return typeof text === 'string' && Object.keys(more).length === 0;
  } catch {
    return false; // a getter threw: the value is read as data, which names the getter
  }
}

const NOT_WHOLE =
  '\n[The tool ran. The parts of its result that stand in brackets could not be read: a tool returns a text or plain data.]';

/** Reads a value that JSON would silently lose, such as a Map or a promise that nobody awaited. */
function dataText(returned: unknown, change: (text: string) => string): string {
  try {
    return change(jsonOf(returned, change)).toWellFormed();
  } catch {
    // JSON cannot hold it.
    const { json, isWhole } = readOddResult(returned, change);
    return change(isWhole ? json : json + NOT_WHOLE).toWellFormed();
  }
}

/** More values take seconds, and objects that refer to each other many times would never end. */
const MAX_VALUES = 1_000_000;

function jsonOf(returned: unknown, change: (text: string) => string): string {
  let values = 0;
  return JSON.stringify(returned, (_, value: unknown) => {
    values += 1;
    if (values > MAX_VALUES) throw new RangeError('it has too many values');
    if (typeof value === 'string') return change(value);
    if (typeof value === 'bigint') return exactInteger(value);
    if (isLost(value)) throw new TypeError('it is no JSON');
    return value;
  });
}

function isLost(value: unknown): boolean {
  if (typeof value === 'function' || typeof value === 'symbol') return true;
  if (typeof value === 'number') return !Number.isFinite(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return isBuffer(value);
  return value instanceof Error || ArrayBuffer.isView(value) || Object.keys(value).length === 0;
}

/** Whether this is a buffer in its `toJSON` form. */
function isBuffer(value: object): boolean {
  const { type, data } = value as { type?: unknown; data?: unknown };
  return type === 'Buffer' && Array.isArray(data);
}

function failed(text: string): ToolRun {
  return { outcome: 'failed', text: text.toWellFormed() };
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
}

/**
 * A tool's return value that JSON cannot hold, as JSON: the tool ran, so as much as possible of its result is read.
 *  O1  What cannot be read is named in brackets in its place, and `isWhole` is then false.
 *  O2  Levels, values and characters are bounded, whatever the value is. Only its getters, `toJSON` and `toString` run;
 *      nothing else of it is called or consumed. What these throw is named too.
 */
function readOddResult(
  returned: unknown,
  change: (text: string) => string,
): { json: string; isWhole: boolean } {
  const reading: Reading = {
    change,
    values: MAX_READ_VALUES,
    characters: MAX_READ_CHARACTERS,
    above: [],
    isWhole: true,
  };
  const value = read(returned, reading);
  return { json: JSON.stringify(value) ?? 'null', isWhole: reading.isWhole };
}

const MAX_READ_LEVELS = 64;
const MAX_READ_VALUES = 50_000;
const MAX_READ_CHARACTERS = 4_194_304;
const NAME_CHARACTERS = 200;

interface Reading {
  readonly change: (text: string) => string;
  /** How many values may still be read. */
  values: number;
  characters: number;
  /** The objects that contain the current one. */
  readonly above: object[];
  isWhole: boolean;
}

function named(reading: Reading, what: string): string {
  reading.isWhole = false;
  return `[${reading.change(what).slice(0, NAME_CHARACTERS)}]`;
}

function read(value: unknown, reading: Reading): unknown {
  reading.values -= 1;
  if (reading.values < 0) return named(reading, 'cut: the result has too many values');
  switch (typeof value) {
    case 'string':
      return readText(value, reading);
    case 'bigint':
      return exactInteger(value);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'symbol':
    case 'function':
      return named(reading, `a ${typeof value}`);
    case 'object':
      return value === null ? null : readInside(value, reading);
    case 'boolean':
    case 'undefined':
      return value;
  }
}

function readText(text: string, reading: Reading): string {
  const whole = reading.change(text);
  const shown = whole.slice(0, Math.max(0, reading.characters));
  reading.characters -= shown.length;
  return shown.length === whole.length
    ? shown
    : shown + named(reading, `cut: ${whole.length - shown.length} more characters`);
}

function readInside(value: object, reading: Reading): unknown {
  const { above } = reading;
  if (above.includes(value)) return named(reading, 'the object that this is in');
  if (above.length >= MAX_READ_LEVELS) return named(reading, `cut: more than ${MAX_READ_LEVELS} levels`);
  above.push(value);
  try {
    return readObject(value, reading);
  } catch (thrown) {
    return named(reading, `it cannot be read: ${thrown instanceof Error ? thrown.message : 'it threw'}`);
  } finally {
    above.pop();
  }
}

function readObject(value: object, reading: Reading): unknown {
  if (Array.isArray(value)) return readList(value, reading);
  if (value instanceof Map) return readMap(value, reading);
  if (value instanceof Set) return readList([...firstOf(value, reading)], reading);
  if (value instanceof Error) return readError(value, reading);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return readBytes(value, reading);
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return read((toJSON as () => unknown).call(value), reading);
  const keys = Object.keys(value).slice(0, reading.values + 1);
  if (keys.length > 0 && !isStream(value)) return readFields(value, keys, reading);
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? {} : readNamed(value, reading);
}

function readFields(value: object, keys: readonly string[], reading: Reading): Record<string, unknown> {
  const found: [string, unknown][] = [];
  for (const key of keys) {
    const isLast = reading.values <= 0;
    found.push([readText(key, reading), readField(value, key, reading)]);
    if (isLast) break;
  }
  return Object.fromEntries(found);
}

function readField(value: object, key: string, reading: Reading): unknown {
  try {
    return read((value as Record<string, unknown>)[key], reading);
  } catch (thrown) {
    return named(reading, `it cannot be read: ${thrown instanceof Error ? thrown.message : 'it threw'}`);
  }
}

function readList(list: readonly unknown[], reading: Reading): unknown[] {
  const items: unknown[] = [];
  for (const item of list) {
    const isLast = reading.values <= 0;
    items.push(read(item, reading));
    if (isLast) break;
  }
  return items;
}

function* firstOf<T>(values: Iterable<T>, { values: most }: Reading): Generator<T> {
  let left = most + 1;
  for (const value of values) {
    if (left <= 0) return;
    left -= 1;
    yield value;
  }
}

/** An object if all keys are texts, otherwise a list of pairs. */
function readMap(map: ReadonlyMap<unknown, unknown>, reading: Reading): unknown {
  const entries = [...firstOf(map, reading)];
  if (!entries.every(([key]) => typeof key === 'string')) return readList(entries, reading);
  const byKey = Object.fromEntries(entries) as Record<string, unknown>;
  return readFields(byKey, Object.keys(byKey), reading);
}

function readError(error: Error, reading: Reading): unknown {
  const { name, message, cause } = error;
  const fields = Object.fromEntries(Object.entries(error).filter(([key]) => key !== 'stack'));
  const all = { name, message, ...fields, ...(cause !== undefined && { cause }) };
  return readFields(all, Object.keys(all), reading);
}

/** Bytes that hold text are read as text. */
function readBytes(value: ArrayBufferView | ArrayBuffer, reading: Reading): string {
  const { byteLength } = value;
  if (byteLength <= reading.characters && (value instanceof Uint8Array || value instanceof ArrayBuffer)) {
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(value);
      // Valid UTF-8 with a zero byte is not text.
      if (!text.includes('\0')) return readText(text, reading);
    } catch {
      // The bytes are not text.
    }
  }
  return named(reading, `${value.constructor.name} of ${byteLength} bytes`);
}

/** A stream is not read: that would consume it, and it may never end. */
function isStream(value: object): boolean {
  return Symbol.asyncIterator in value || Symbol.iterator in value || 'pipe' in value || 'getReader' in value;
}

function readNamed(value: object, reading: Reading): string {
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  const words =
    value.toString === Object.prototype.toString ? '' : (value as { toString(): string }).toString();
  if (words !== '' && words !== `[object ${tag}]`) return readText(words, reading);
  const name = tag === 'Object' ? value.constructor?.name || tag : tag;
  return named(reading, `${name}: nothing in it can be read`);
}

/**
 * Checks arguments within the time limit of a call, because a check may ask other services. Null if it took longer or was aborted.
 */
export function checkInTime(
  tool: Tool,
  args: unknown,
  within: { clock: Clock; signal?: AbortSignal },
): Promise<Awaited<ReturnType<Tool['check']>> | null> {
  return inTime(tool, tool.check(args), within);
}

/** Like `checkInTime`, for the arguments as the model wrote them. */
export function parseInTime(
  tool: Tool,
  call: ToolCall,
  within: { clock: Clock; signal?: AbortSignal },
): Promise<ParsedCall | null> {
  return inTime(tool, parseCall(tool, call), within);
}

async function inTime<T>(
  { timeoutMs }: Tool,
  work: Promise<T>,
  { clock, signal }: { clock: Clock; signal?: AbortSignal },
): Promise<T | null> {
  const over = new AbortController();
  try {
    const ends = signal ? AbortSignal.any([over.signal, signal]) : over.signal;
    return (await Promise.race([work, clock.sleep(timeoutMs, ends)])) ?? null;
  } finally {
    over.abort();
  }
}
