import type { Context } from 'hono';
import { a2aError } from '../../doors/a2a/problem.ts';
import { toTroupeError } from '../../errors.ts';
import { readMessages } from '../read-json.ts';

/** Throws PARSE_ERROR, and what every route refuses. */
export async function readBody(context: Context): Promise<unknown> {
  try {
    return await readMessages(context);
  } catch (error) {
    const { code, message } = toTroupeError(error);
    if (code === 'event_invalid') throw a2aError('PARSE_ERROR', message);
    throw error;
  }
}
