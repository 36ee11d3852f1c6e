import * as z from 'zod';

/** Readers of JSON take any depth, writers end in a stack overflow at some thousands of levels. */
export const MAX_DATA_DEPTH = 200;

/** A JSON value of any shape that can be written again. */
export const JsonData = z
  .unknown()
  .refine((value) => isWithin(value, MAX_DATA_DEPTH), `is nested deeper than ${MAX_DATA_DEPTH} levels`);

function isWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((item) => isWithin(item, levels - 1));
}
