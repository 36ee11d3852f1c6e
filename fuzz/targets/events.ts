import * as z from 'zod';
import { pick, type Random } from '../../sim/random.ts';
import { TroupeError } from '../../src/base/errors.ts';
import { ActorRecord, Command, Event, EventDraft } from '../../src/events/index.ts';
import { CommandRequest, NewEventBody, parseInput } from '../../src/http/schemas.ts';
import { mutate } from '../mutate.ts';
import { type JsonSchema, sampleOf } from '../sample-of.ts';
import { Broken, type Target } from '../target.ts';

/**
 * Incoming events, commands and records, each with one of the schemas.
 * E1  The input is refused with `event_invalid`, or it is parsed.
 * E2  The parsed value can be written as JSON, and parses to the same value again.
 */
export interface EventInput {
  schema: string;
  value: unknown;
}

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  Event,
  EventDraft,
  Command,
  CommandRequest,
  NewEventBody,
  ActorRecord,
};

export function eventsTarget(schemas: Readonly<Record<string, z.ZodType>> = SCHEMAS): Target<EventInput> {
  const names = Object.keys(schemas);
  const shapes = new Map(names.map((name) => [name, shapesOf(schemas[name] ?? z.never())]));
  return {
    name: 'events',
    make: (random) => makeInput(random, shapes),
    run({ schema: name, value }) {
      const schema = schemas[name] ?? z.never();
      let parsed: unknown;
      try {
        parsed = parseInput(schema, value, 'the input');
      } catch (error) {
        if (error instanceof TroupeError && error.policy === 'fix_input') return error.code;
        throw error;
      }
      checkReadAgain(schema, parsed);
      return 'accepted';
    },
  };
}

function makeInput(random: Random, shapes: ReadonlyMap<string, readonly JsonSchema[]>): EventInput {
  const schema = pick(random, [...shapes.keys()]);
  const shape = pick(random, shapes.get(schema) ?? []);
  const sample = sampleOf(random, shape);
  // Some samples stay unchanged: if all were refused, nothing behind the first check would be tested.
  return { schema, value: random() < 0.1 ? sample : mutate(random, sample) };
}

/** The members of a union, separately, so that every kind of event is equally frequent. */
export function shapesOf(schema: z.ZodType): JsonSchema[] {
  const shape = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    reused: 'inline',
  }) as JsonSchema;
  const { $defs } = shape;
  const members = shape.anyOf ?? shape.oneOf ?? [shape];
  return members.map((member) => ($defs ? { ...member, $defs } : member));
}

export function checkReadAgain(schema: z.ZodType, parsed: unknown): void {
  const text = writeJson(parsed);
  const again = schema.safeParse(JSON.parse(text));
  if (!again.success)
    throw new Broken(`parsed, written, and not parsed again: ${again.error.issues[0]?.message}`);
  const second = writeJson(again.data);
  if (second !== text) throw new Broken('parsed, written and parsed again it is another');
}

function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new Broken(`what was parsed cannot be written: ${String(cause)}`);
  }
}
