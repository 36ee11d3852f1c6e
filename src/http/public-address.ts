import type { Context } from 'hono';
import * as z from 'zod';
import { PublicUrl } from '../library/access/index.ts';
import { parseGiven } from '../events/index.ts';
import { type GuardOptions, hostNameOf, isKnownHost } from './guard.ts';
import { mountPath } from './page/mount-path.ts';
import { Refusal } from './refusal.ts';

/** Without its slash at the end. Throws `config_invalid`. */
export function readPublicUrl(text: string): string {
  const { publicUrl } = parseGiven(z.object({ publicUrl: PublicUrl }), { publicUrl: text }, 'the options');
  return publicUrl.replace(/\/$/, '');
}

/**
 * Where clients reach the app, without a slash at the end. `Host` is whatever a client says, so that what is signed names the setting,
 * or a host that was allowed. Throws `host_refused`.
 */
export function publicAddress(context: Context, options: GuardOptions): string {
  const { req } = context;
  if (options.publicUrl !== undefined) return options.publicUrl;
  const host = hostNameOf(req);
  if (isKnownHost(host, options)) return `${originOf(req)}${mountPath(context)}`;
  const message = `cards are not signed for the host ${host}: set access.publicUrl to the address that clients use`;
  throw new Refusal(403, 'host_refused', message, { host });
}

/** What a proxy that ends TLS says of the scheme. */
function originOf(req: Context['req']): string {
  const { origin, protocol, host } = new URL(req.url);
  const given = req.header('x-forwarded-proto');
  return given === 'https' && protocol === 'http:' ? `https://${host}` : origin;
}
