import * as z from 'zod';
import { problemsIn, problemText, tryParse } from '../events/index.ts';

const TOOL_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const AFunction = z.custom<() => unknown>((value) => typeof value === 'function', 'give a function');
const Ids = z.array(z.string());

/** What `schema` is, is said where it is read. */
const Definition = z.strictObject({
  name: z
    .string()
    .regex(TOOL_NAME, 'is 1 to 64 letters, digits, _ and -, and begins with a letter: such as "look_up"'),
  description: z.string(),
  schema: z.unknown(),
  parameters: z.looseObject({}).optional(),
  run: AFunction,
  idempotent: z.boolean().optional(),
  bounded: z.boolean().optional(),
  needsApproval: z
    .union([
      z.boolean(),
      AFunction,
      z.strictObject({ when: AFunction.optional(), by: Ids.optional(), deadlineMs: z.number().optional() }),
    ])
    .optional(),
  timeoutMs: z.number().positive().optional(),
  previewBytes: z.number().positive().optional(),
});

/** Throws a `TypeError` that names the tool, every wrong field and what to give. */
export function checkDefinition(definition: unknown): void {
  const parsed = tryParse(Definition, definition);
  if (parsed.success) return;
  const { name } = Object(definition) as { name?: unknown };
  const which = typeof name === 'string' ? `the tool ${JSON.stringify(name)}` : 'a tool';
  throw new TypeError(`${which}: ${problemText(problemsIn(parsed.error), 'it')}`);
}
