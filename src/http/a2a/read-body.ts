import type { Context } from 'hono';
import { a2aError } from '../../doors/a2a/problem.ts';
import { toTroupeError } from '../../base/errors.ts';
import { readOneMessage } from '../read-json.ts';
import { Refusal } from '../refusal.ts';

/** Throws PARSE_ERROR, CONTENT_TYPE_NOT_SUPPORTED, and what every route refuses. */
export async function readBody(context: Context): Promise<unknown> {
  try {
    return await readOneMessage(context);
  } catch (error) {
    if (error instanceof Refusal && error.code === 'content_type_refused')
      throw a2aError('CONTENT_TYPE_NOT_SUPPORTED', error.message);
    const { code, message } = toTroupeError(error);
    if (code === 'event_invalid') throw a2aError('PARSE_ERROR', message);
    throw error;
  }
}
