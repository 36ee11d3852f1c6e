import type { Context } from 'hono';
import { a2aError } from './problem.ts';
import { Refusal, readOneMessage } from '../http.ts';
import { toTroupeError } from '../troupe.ts';
import { PROTOCOL_VERSION } from './protocol.ts';

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

const VERSION = 'a2a-version';

/** Throws VERSION_NOT_SUPPORTED. A request without the header is one of 0.3. */
export function checkVersion({ req }: Context): void {
  const given = req.header(VERSION) || req.query('A2A-Version') || '0.3';
  if (given === PROTOCOL_VERSION) return;
  const message = `this agent speaks A2A ${PROTOCOL_VERSION}, not ${given.slice(0, 20)}: send the header A2A-Version`;
  throw a2aError('VERSION_NOT_SUPPORTED', message);
}
