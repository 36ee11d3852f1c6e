import type * as z from 'zod';
import { TroupeError } from '../errors.ts';
import { tryParse } from './try-parse.ts';

/** What somebody has given as `name`, "the key" say. Throws `config_invalid` with every problem and its path. */
export function parseGiven<T>(schema: z.ZodType<T>, input: unknown, name: string): T {
  const parsed = tryParse(schema, input);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }));
  const told = problems.map(({ path, message }) => `${path || name}: ${message}`).join('; ');
  throw new TroupeError('config_invalid', told, { problems });
}
