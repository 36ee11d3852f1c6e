import type { Context } from 'hono';

/**
 * Content codings that the client accepts, in lower case. Empty unless the app writes to `node:http` itself. Servers that
 * expect a `Response` compress by themselves: Next.js drops `content-encoding`, and Workers would compress twice.
 */
export function codingsFor(context: Context): Set<string> {
  const { outgoing } = (context.env ?? {}) as { outgoing?: object };
  return outgoing ? acceptedEncodings(context.req.header('accept-encoding') ?? '') : new Set();
}

function acceptedEncodings(header: string): Set<string> {
  const wanted = header.split(',').map((part) => {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    return { name, isRefused: parameters.some((each) => /^q=0(?:\.0*)?$/.test(each)) };
  });
  return new Set(wanted.flatMap(({ name, isRefused }) => (isRefused ? [] : [name])));
}
