import type { SpecTypeName, SpecTypes, StandardSchemaV1 } from '@modelcontextprotocol/client';
import * as z from 'zod';

/** Accepts every object: the size of a result is limited before it is validated. */
export const AnyResult = z.looseObject({});

/** Limit of the nesting of a message. The client's schemas are recursive, and would overflow the stack. */
const MAX_LEVELS = 200;
const PATH_SHOWN = 200;

/** Throws a readable reason. */
export async function parseResult<K extends SpecTypeName>(name: K, value: unknown): Promise<SpecTypes[K]> {
  if (isTooDeep(value)) throw new Error(`its answer has more than ${MAX_LEVELS} levels`);
  const { specTypeSchemas } = await import('@modelcontextprotocol/client');
  const schema: StandardSchemaV1<unknown, SpecTypes[K]> = specTypeSchemas[name];
  const parsed = await schema['~standard'].validate(value);
  if (!parsed.issues) return parsed.value;
  const [issue] = parsed.issues;
  const path = issue?.path?.map((part) => String(typeof part === 'object' ? part.key : part)) ?? [];
  const place = path.length > 0 ? ` at ${path.join('.').slice(0, PATH_SHOWN)}` : '';
  throw new Error(`its answer is not valid${place}: ${issue?.message}`);
}

export function isTooDeep(value: unknown): boolean {
  return isDeeper(value, MAX_LEVELS);
}

/** Goes level by level: recursion into a deep value would overflow the stack. */
export function isDeeper(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth += 1) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}
