import { Script } from 'node:vm';
import { type AskedReply, type Event, hasAuthority, isTaskEnd } from '../../events/index.ts';
import { readySchema } from '../../tools/schema.ts';
import { originsOf } from '../calls/asked-by.ts';
import type { ReplySchema } from '../engine/agent-runtime.ts';

type Schema = Record<string, unknown>;

/**
 * The form in which the writer of a message wants the answer. Throws if it cannot be checked.
 * F1  The schema is of somebody outside, and a small one can make a check that never ends: its patterns are told to the
 *     model and not checked, and one that checks a value over and over is refused.
 * F2  What is left has an end.
 */
export function askedReply({ schema, calls }: AskedReply): ReplySchema {
  refuseEndless(schema);
  const ready = inTime(() => readySchema(withoutPatterns(withDraft(schema)) as Schema, 'output', schema));
  return {
    schema: ready.json,
    async check(value) {
      // Who has nothing to call may answer in words.
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

/** The form that the inputs of a turn, or what has led to them, want the answer in; the last one counts. */
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

/** Runs what does not wait. The limit of a script also ends functions that it calls. */
function inTime<T>(work: () => T): T {
  return WORK.runInNewContext({ work }, { timeout: LONGEST_MS }) as T;
}

/** Clients name drafts in which their definitions would be elsewhere. */
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

/** Most parts of a schema, with each reference in place of what it stands for. */
const MOST_PARTS = 5_000;
const CHOICES = ['anyOf', 'oneOf', 'allOf'];

/** What a part of a schema comes to. `leadsBack`: to a definition that it is part of. */
interface Measured {
  parts: number;
  leadsBack: boolean;
}

/**
 * Refuses definitions that multiply each other, and choices two of which lead back to where they are: both would be tried for
 * each level of a value. Choices of different types do not, because a value has one.
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

/** The type that a choice declares, or what it refers to. */
function typeOf(choice: unknown, targetOf: (ref: string) => unknown): string {
  let at = choice as { $ref?: unknown; type?: unknown } | undefined;
  for (let steps = 0; typeof at?.$ref === 'string' && steps < 16; steps++)
    at = targetOf(at.$ref) as typeof at;
  return typeof at?.type === 'string' ? at.type : 'any';
}
