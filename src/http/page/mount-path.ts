import type { Context } from 'hono';
import { basePath } from 'hono/route';

/** Prefix reported by proxies that strip it from the path. */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9._~-]+)*\/?$/;
const MAX_PREFIX_CHARS = 1_000;

/** Where browsers find the app, without a slash at the end. */
export function mountPath(context: Context): string {
  return `${prefixBefore(context)}${placeInHono(context)}`;
}

/** What a proxy and another framework took off the path before Hono saw it. */
export function prefixBefore(context: Context): string {
  return `${plainPath(context.req.header('x-forwarded-prefix'))}${strippedPath(context)}`;
}

/** The path of the mount in the request as Hono sees it. */
export function placeInHono(context: Context): string {
  return basePath(context).replace(/(?<!\/)\/+$/, '');
}

/** Express and others that mount like it take the mount's path off `url`, and keep the whole in `originalUrl`. */
function strippedPath({ env }: Context): string {
  const { incoming } = (env ?? {}) as { incoming?: { url?: string; originalUrl?: string } };
  const whole = pathOf(incoming?.originalUrl);
  const rest = pathOf(incoming?.url);
  if (whole === null || rest === null) return '';
  if (whole.endsWith(rest)) return plainPath(whole.slice(0, whole.length - rest.length));
  // `/inspector` itself is `/` below the mount.
  return rest === '/' ? plainPath(whole) : '';
}

function pathOf(url: string | undefined): string | null {
  return url?.split('?', 1)[0] ?? null;
}

/** Without its last slash; the empty string for a value that does not look like a path. */
function plainPath(text = ''): string {
  // Matched from the front only: a search for the end would take quadratic time.
  if (text.length > MAX_PREFIX_CHARS || !PLAIN_PATH.test(text)) return '';
  return text.endsWith('/') ? text.slice(0, -1) : text;
}
