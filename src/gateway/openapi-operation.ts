import type * as z from 'zod';

/** A route, as the API's description has it. */
export interface Operation {
  summary: string;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** The response that means success. */
  answer: { status: number; type?: string; schema?: object; of?: z.ZodType };
}

export const WHOLE = { type: 'integer' };

export function listOf(name: string, items: object, more: object = {}): object {
  return { type: 'object', properties: { [name]: { type: 'array', items }, ...more } };
}
