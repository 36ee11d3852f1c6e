import { TEXTS } from '../../events/model-texts.ts';
import { JsonData, type AskedReply, type Event, hasAuthority, isTaskEnd } from '../../events/index.ts';
import type { ResponseName } from '../../providers/provider.ts';
import type { ReplySchema } from '../actor/agent-runtime.ts';
import type { AnswerFault, ModelAnswer } from '../attempt/turn-run.ts';
import { Script } from 'node:vm';
import { readySchema } from '../../tools/schema.ts';
import { originsOf } from '../log/read-turn.ts';

export interface Answered {
  kind: 'answered';
  answer: ModelAnswer;
  response?: ResponseName;
}

/** Maximum characters of a reply that is parsed as data, far more than an event may hold. */
const MAX_REPLY_CHARS = 4 * 1_024 * 1_024;

/** Checks the final answer of a turn against the agent's reply schema. If it does not fit, the answer gets a fault. */
export async function checkReply(reply: ReplySchema | null, outcome: Answered): Promise<Answered> {
  const { answer } = outcome;
  if (!reply || answer.calls.length > 0 || answer.stop === 'refusal' || answer.fault) return outcome;
  const read = await dataOf(answer.text, reply);
  if ('data' in read) return { ...outcome, answer: { ...answer, ...read } };
  const why = answer.stop === 'length' && read.isCut ? 'it was cut off at maxOutputTokens' : read.problem;
  return { ...outcome, answer: { ...answer, fault: faultOf(why) } };
}

function faultOf(why: string): AnswerFault {
  return {
    note: TEXTS.turn.replyUnfit(why),
    code: 'provider_invalid_reply',
    message: `the reply does not fit the agent's reply schema: ${why}`,
  };
}

/** The data of a reply, or the problem. `isCut`: the text ends within its data. */
type Read = { text: string; data: unknown } | { problem: string; isCut?: true };

async function dataOf(said: string, reply: ReplySchema): Promise<Read> {
  if (said.length > MAX_REPLY_CHARS)
    return { problem: `it has ${said.length} characters, and at most ${MAX_REPLY_CHARS} are read` };
  const text = withoutFence(said);
  const value = parseJson(text);
  if (!(value instanceof SyntaxError)) return fitting(reply, text, value);
  // A schema that allows a text accepts the words themselves.
  const words = await reply.check(said);
  if ('data' in words) return { text: said, data: words.data };
  const found = await dataInWords(said, reply);
  return (
    found ?? { problem: said.trim() === '' ? 'it is empty' : `it is no JSON: ${value.message}`, isCut: true }
  );
}

async function fitting(reply: ReplySchema, text: string, value: unknown): Promise<Read> {
  const checked = await reply.check(value);
  if ('problem' in checked) return checked;
  return JsonData.safeParse(checked.data).success
    ? { text, data: checked.data }
    : { problem: 'it is nested too deeply' };
}

/** Data with words around it: in fences, closed or not, or in brackets. Only one piece may fit. Null if there is no data. */
async function dataInWords(said: string, reply: ReplySchema): Promise<Read | null> {
  const fenced = await readAll(fencesIn(said), reply);
  const read = fenced.length > 0 ? fenced : await readAll(bracketsIn(said), reply);
  const fits = read.filter((each) => 'data' in each);
  if (fits.length > 1) return { problem: 'it holds several pieces of JSON that fit' };
  return fits[0] ?? read[0] ?? null;
}

async function readAll(texts: readonly string[], reply: ReplySchema): Promise<Read[]> {
  const read: Read[] = [];
  for (const text of texts) {
    const value = parseJson(text);
    if (!(value instanceof SyntaxError)) read.push(await fitting(reply, text, value));
  }
  return read;
}

const MOST_FENCES = 8;
const FENCE_LINE = /^[ \t]{0,3}(`{3,}|~{3,})[ \t]*(?:[\w+.-]{1,20}[ \t]*)?\r?$/;

function fencesIn(said: string): string[] {
  const found: string[] = [];
  let open: { mark: string; lines: string[] } | null = null;
  for (const line of said.split('\n')) {
    const mark = FENCE_LINE.exec(line)?.[1];
    if (open && mark?.startsWith(open.mark)) {
      found.push(open.lines.join('\n'));
      open = null;
    } else if (open) open.lines.push(line);
    else if (mark !== undefined) open = { mark, lines: [] };
  }
  if (open) found.push(open.lines.join('\n'));
  return found.slice(0, MOST_FENCES).map((text) => text.trim());
}

/** The texts from the first opening bracket to the last closing one of its kind. */
function bracketsIn(said: string): string[] {
  return ['{}', '[]'].flatMap((pair) => {
    const begin = said.indexOf(pair.slice(0, 1));
    const end = said.lastIndexOf(pair.slice(1));
    return begin >= 0 && end > begin ? [said.slice(begin, end + 1)] : [];
  });
}

const FENCE = /^```(?:json)?[^\S\n]*\n/i;

/** The text without a Markdown fence around it, which some models add. */
function withoutFence(text: string): string {
  const whole = text.trim();
  const start = FENCE.exec(whole)?.[0].length;
  const end = whole.length - '```'.length;
  return start === undefined || start > end || !whole.endsWith('```')
    ? text
    : whole.slice(start, end).trimEnd();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error; // A SyntaxError, which no JSON text gives.
  }
}

type Schema = Record<string, unknown>;

/**
 * The reply schema that the writer of a message requests. Throws if it cannot be checked.
 * F1  The schema comes from outside, and even a small one can make a check that never ends. So its patterns are shown to the
 *     model but not checked, and a schema that checks a value again and again is refused.
 * F2  With the remaining schemas every check ends.
 */
export function askedReply({ schema, calls }: AskedReply): ReplySchema {
  refuseEndless(schema);
  const ready = inTime(() => readySchema(withoutPatterns(withDraft(schema)) as Schema, 'output', schema));
  return {
    schema: ready.json,
    async check(value) {
      // If calls are optional, an answer without them may be words.
      if (calls === 'optional' && !('calls' in Object(value))) return { data: value };
      try {
        const checked = await inTime(() => ready.check(value));
        if ('value' in checked) return { data: checked.value };
        return { problem: checked.problems.slice(0, 3).join('; ') };
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
        return { problem: `checking it takes longer than ${LONGEST_MS} ms` };
      }
    },
  };
}

/** The reply schema that the inputs of a turn, or the events that led to them, request. The last one counts. */
export async function replyAskedBy(
  deps: Parameters<typeof originsOf>[0],
  inputs: readonly Event[],
): Promise<AskedReply | undefined> {
  let isLedTo = false;
  let mayAsk = false;
  for (const event of inputs) {
    isLedTo ||= event.kind === 'handoff' || isTaskEnd(event);
    mayAsk ||= event.context?.reply !== undefined;
  }
  if (!isLedTo && !mayAsk) return undefined;
  const askers = isLedTo ? await originsOf(deps, inputs) : inputs;
  const asked = askers.findLast((event) => event.context?.reply && hasAuthority(event));
  return asked?.context?.reply;
}

const LONGEST_MS = 1_000;
const WORK = new Script('work()');

/** Runs synchronous work with a time limit. The limit of a script also ends functions that it calls. */
function inTime<T>(work: () => T): T {
  return WORK.runInNewContext({ work }, { timeout: LONGEST_MS }) as T;
}

/** The schema with the draft that Troupe uses. Clients name other drafts, in which definitions are elsewhere. */
function withDraft(schema: Schema): Schema {
  const $schema = 'definitions' in schema ? 'http://json-schema.org/draft-07/schema#' : undefined;
  return { ...schema, $schema };
}

function withoutPatterns(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPatterns);
  if (typeof value !== 'object' || value === null) return value;
  const isOpen = 'patternProperties' in value;
  const kept = Object.entries(value).filter(
    ([key, part]) =>
      !(key === 'pattern' && typeof part === 'string') &&
      !(isOpen && (key === 'patternProperties' || key === 'additionalProperties')),
  );
  return Object.fromEntries(kept.map(([key, part]) => [key, withoutPatterns(part)]));
}

/** Maximum parts of a schema, with each reference replaced by its definition. */
const MOST_PARTS = 5_000;
const CHOICES = ['anyOf', 'oneOf', 'allOf'];

/** The measure of a part of a schema. `leadsBack`: it refers to a definition of which it is a part. */
interface Measured {
  parts: number;
  leadsBack: boolean;
}

/**
 * Refuses definitions that multiply each other, and alternatives of which two are recursive, because both would be tried for
 * each level of a value. Alternatives of different types are allowed, because a value has one type.
 */
function refuseEndless(schema: Schema): void {
  const definitions = { ...Object(schema['definitions']), ...Object(schema['$defs']) } as Schema;
  const known = new Map<string, Measured>();
  const open = new Set<string>();

  function targetOf(ref: string): unknown {
    const [, name] = /^#\/(?:\$defs|definitions)\/(.+)$/.exec(ref) ?? [];
    return name === undefined ? (ref === '#' ? schema : undefined) : definitions[name];
  }

  function measureRef(ref: string): Measured {
    if (open.has(ref)) return { parts: 1, leadsBack: true };
    const before = known.get(ref);
    if (before) return before;
    open.add(ref);
    const measured = measure(targetOf(ref));
    open.delete(ref);
    known.set(ref, measured);
    return measured;
  }

  function measureChoices(choices: readonly unknown[], isEach: boolean): Measured {
    const back = new Set<string>();
    let sum = { parts: 1, leadsBack: false };
    for (const choice of choices) {
      const measured = measure(choice);
      sum = added(sum, measured);
      if (!measured.leadsBack) continue;
      const type = isEach ? 'each' : typeOf(choice, targetOf);
      if (back.has(type)) throw new TypeError('choices of one type lead back to it: one at most may');
      back.add(type);
    }
    return sum;
  }

  function measure(value: unknown): Measured {
    if (typeof value !== 'object' || value === null) return { parts: 0, leadsBack: false };
    let sum = { parts: 1, leadsBack: false };
    for (const [key, part] of Object.entries(value)) {
      if (value === schema && (key === '$defs' || key === 'definitions')) continue;
      const isChoice = CHOICES.includes(key) && Array.isArray(part);
      if (isChoice) sum = added(sum, measureChoices(part, key === 'allOf'));
      else if (key === '$ref' && typeof part === 'string') sum = added(sum, measureRef(part));
      else sum = added(sum, measure(part));
    }
    return sum;
  }

  open.add('#');
  measure(schema);
}

function added(a: Measured, b: Measured): Measured {
  const parts = a.parts + b.parts;
  if (parts > MOST_PARTS) throw new TypeError(`it has more than ${MOST_PARTS} parts, with what it refers to`);
  return { parts, leadsBack: a.leadsBack || b.leadsBack };
}

function typeOf(choice: unknown, targetOf: (ref: string) => unknown): string {
  let at = choice as { $ref?: unknown; type?: unknown } | undefined;
  for (let steps = 0; typeof at?.$ref === 'string' && steps < 16; steps++)
    at = targetOf(at.$ref) as typeof at;
  return typeof at?.type === 'string' ? at.type : 'any';
}
