import type { ReplySchema } from '../../actors/actor/agent-runtime.ts';
import { type DataSchema, firstProblems, readySchema } from '../../tools/schema.ts';

/** Schema of an agent's replies: of zod, valibot, arktype or any library of Standard Schema, or a JSON schema (draft 2020-12). */
export type ReplyInput = DataSchema;

/** Most problems reported per reply: a reply may be wrong everywhere, and the report is stored. */
const MAX_PROBLEMS = 3;

/** The JSON schema for vendors, and the check of replies. Throws if `reply` cannot be converted to both. */
export function replySchema(reply: ReplyInput): ReplySchema {
  const { json: schema, check } = readySchema(reply, 'output');
  return {
    schema,
    async check(value) {
      const checked = await check(value);
      if ('value' in checked) return { data: checked.value };
      return { problem: firstProblems(checked.problems, MAX_PROBLEMS).join('; ') };
    },
  };
}

/** Why a value cannot be a reply schema. Null: it can. */
export function replyProblem(reply: unknown): string | null {
  try {
    replySchema(reply as ReplyInput);
    return null;
  } catch (error) {
    return `the schema cannot be used: ${error instanceof Error ? error.message : String(error)}`;
  }
}
