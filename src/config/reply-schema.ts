import * as z from 'zod';
import type { ReplySchema } from '../actors/engine/agent-runtime.ts';

/** What an agent's replies must be: a zod schema, or a JSON schema (draft 2020-12), as in a JSON file. */
export type ReplyInput = z.ZodType | Record<string, unknown>;

/** An issue or two tell what is wrong; a reply that is wrong everywhere would fill the log. */
const MAX_PROBLEMS = 3;

/** The schema as vendors are sent it, and the check of what comes back. Throws for one that cannot be written as both. */
export function replySchema(reply: ReplyInput): ReplySchema {
  const own = isZod(reply) ? reply : null;
  // As the data that comes out: a transform would leave something that is not what the model was asked for.
  const { $schema: _, ...schema } = own ? z.toJSONSchema(own) : (reply as Record<string, unknown>);
  const parser = own ?? z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  return {
    schema,
    async check(value) {
      const parsed = await parser.safeParseAsync(value);
      if (parsed.success) return { data: parsed.data };
      const { issues } = parsed.error;
      const told = issues.slice(0, MAX_PROBLEMS).map(problemOf);
      const more = issues.length - told.length;
      return { problem: [...told, ...(more > 0 ? [`and ${more} more`] : [])].join('; ') };
    },
  };
}

/** For an agents file: why this can be no reply schema; null where it can. */
export function replyProblem(reply: unknown): string | null {
  if (typeof reply !== 'object' || reply === null || Array.isArray(reply))
    return 'a reply is a zod schema or a JSON schema';
  try {
    replySchema(reply as ReplyInput);
    return null;
  } catch (error) {
    return `the schema cannot be used: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** By its shape: an application may have a zod of its own. */
function isZod(reply: ReplyInput): reply is z.ZodType {
  return '_zod' in reply;
}

function problemOf({ path, message }: z.core.$ZodIssue): string {
  return path.length > 0 ? `${path.map(String).join('.')}: ${message}` : message;
}
