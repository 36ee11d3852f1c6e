import type { Context } from 'hono';
import { a2aError } from '../../doors/a2a/problem.ts';
import { PROTOCOL_VERSION } from '../../doors/a2a/protocol.ts';

const VERSION = 'a2a-version';

/** Throws VERSION_NOT_SUPPORTED. A request without the header is one of 0.3. */
export function checkVersion({ req }: Context): void {
  const given = req.header(VERSION) || req.query('A2A-Version') || '0.3';
  if (given === PROTOCOL_VERSION) return;
  const message = `this agent speaks A2A ${PROTOCOL_VERSION}, not ${given.slice(0, 20)}: send the header A2A-Version`;
  throw a2aError('VERSION_NOT_SUPPORTED', message);
}
