import * as z from 'zod';
import type { ReplySchema } from '../actors/engine/agent-runtime.ts';

/** Schema of an agent's replies: a zod schema, or a JSON schema (draft 2020-12). */
export type ReplyInput = z.ZodType | Record<string, unknown>;

/** Most problems reported per reply: a reply may be wrong everywhere, and the report is stored. */
const MAX_PROBLEMS = 3;

/** The JSON schema for vendors, and the check of replies. Throws if `reply` cannot be converted to both. */
export function replySchema(reply: ReplyInput): ReplySchema {
  const own = isZod(reply) ? reply : null;
  // The output schema: transforms cannot be expressed and throw here.
  const { $schema: _, ...schema } = own ? z.toJSONSchema(own) : (reply as Record<string, unknown>);
  const parser = own ?? z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  return {
    schema,
    async check(value) {
      const parsed = await parser.safeParseAsync(value);
      if (parsed.success) return { data: parsed.data };
      const { issues } = parsed.error;
      const shown = issues.slice(0, MAX_PROBLEMS).map(problemOf);
      const more = issues.length - shown.length;
      return { problem: [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ') };
    },
  };
}

/** Why a value cannot be a reply schema. Null: it can. */
export function replyProblem(reply: unknown): string | null {
  if (typeof reply !== 'object' || reply === null || Array.isArray(reply))
    return 'reply must be a zod schema or a JSON schema';
  try {
    replySchema(reply as ReplyInput);
    return null;
  } catch (error) {
    return `the schema cannot be used: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Checked by shape: an application may use its own copy of zod. */
function isZod(reply: ReplyInput): reply is z.ZodType {
  return '_zod' in reply;
}

function problemOf({ path, message }: z.core.$ZodIssue): string {
  return path.length > 0 ? `${path.map(String).join('.')}: ${message}` : message;
}
