import type { MiddlewareHandler } from 'hono';
import { cors as honoCors } from 'hono/cors';
import * as z from 'zod';
import { CorsSettings } from '../library/access/index.ts';
import { parseGiven } from '../events/index.ts';

/** For one hour browsers ask only once. */
const MAX_AGE_S = 3_600;

/** Throws `config_invalid`. */
export function readCors(given: CorsSettings): CorsSettings {
  return parseGiven(z.object({ cors: CorsSettings }), { cors: given }, 'cors').cors;
}

/** Answers preflight requests, which carry no credential, and lets pages of the listed origins read answers. */
export function allowOrigins({ origins, credentials = false }: CorsSettings): MiddlewareHandler {
  const allow = honoCors({
    origin: (origin) => (origins.includes(origin) ? origin : null),
    credentials,
    allowMethods: ['GET', 'HEAD', 'POST', 'DELETE'],
    allowHeaders: ['authorization', 'content-type', 'if-none-match', 'last-event-id', 'x-troupe-token'],
    exposeHeaders: ['allow', 'content-disposition', 'etag', 'retry-after', 'www-authenticate'],
    maxAge: MAX_AGE_S,
  });
  return async function allowListed(context, next) {
    if (origins.includes(context.req.header('origin') ?? '')) return allow(context, next);
    await next();
    context.res.headers.append('vary', 'origin');
  };
}
