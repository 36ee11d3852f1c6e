import { createHash } from 'node:crypto';
import type { Context, Hono } from 'hono';
import { codingsFor } from '../codings.ts';
import { isKeyless } from '../access/gate.ts';
import { checkHost, type GuardOptions, READS } from '../guard.ts';
import { mountPath, placeInHono } from './mount-path.ts';
import { type PageManifest, viewHints } from './view-hints.ts';
import { BUILT_PAGE, readWebFile } from './web-folder.ts';

export interface PageOptions {
  /** The folder of the built page, or false for an API without one. Default: the page that comes with Troupe. */
  web?: string | false | undefined;
  /** Shown on the page. */
  version?: string | undefined;
}

/** First path segments that never answer with the page. */
const NOT_THE_PAGE = new Set(['api', 'metrics', 'healthz', 'readyz']);
/** Of every document and file of a page. */
export const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' blob:; base-uri 'self'; frame-ancestors 'none'; form-action 'none'; object-src 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};
/** For files whose names change with their content. */
const FOREVER = 'public, max-age=31536000, immutable';

/**
 * Serves the page at the path that the app is mounted at: its files, and its document for every other path, which the page
 * itself routes.
 *
 * The page is served before the guard. Where a credential is needed, the document has no secret and asks the user for it.
 * Otherwise it contains the write token, and is served under trusted host names only.
 */
export function addPageRoutes(app: Hono, options: PageOptions & { trust: GuardOptions }): void {
  const { web = BUILT_PAGE, version = '', trust } = options;
  if (web === false) return;
  // Middleware instead of a route: requests that it does not answer continue.
  app.use(async (context, next) => {
    const { req } = context;
    if (!READS.has(req.method)) return next();
    const path = req.path.slice(placeInHono(context).length).replace(/^\/+/, '');
    const [first = ''] = path.split('/');
    if (NOT_THE_PAGE.has(first)) return next();
    const file = path === 'index.html' ? null : await fileOf(context, web, path);
    if (file) return file;
    if (first === 'assets' || !(req.header('accept') ?? '').includes('text/html')) return next();
    checkHost(req, trust);
    const base = `${mountPath(context)}/`;
    const built = await readWebFile(web, 'index.html');
    const facts = { base, version, ...accessOf(trust) };
    const hints = viewHints(await manifestOf(web), {
      path,
      query: new URL(req.url).search,
      isReadable: facts.mode !== 'token',
    });
    const html = built ? fillPage(new TextDecoder().decode(built.bytes), facts, hints) : missingPage(base);
    return documentOf(context, html);
  });
}

/** Empty in a folder without one: the document then names nothing in advance. */
async function manifestOf(web: string): Promise<PageManifest> {
  const file = await readWebFile(web, 'manifest.json');
  return file ? (JSON.parse(new TextDecoder().decode(file.bytes)) as PageManifest) : {};
}

function accessOf(trust: GuardOptions): { mode: PageMode; token: string } {
  const { readOnly, writeToken } = trust;
  if (!isKeyless(trust)) return { mode: 'token', token: '' };
  if (readOnly) return { mode: 'read-only', token: '' };
  return { mode: 'write', token: writeToken ?? '' };
}

async function fileOf(context: Context, web: string, path: string): Promise<Response | null> {
  const file = await readWebFile(web, path, codingsFor(context));
  if (!file) return null;
  return context.body(file.bytes, 200, {
    ...PAGE_HEADERS,
    'content-type': file.type,
    ...(file.encoding && { 'content-encoding': file.encoding }),
    'cache-control': path.startsWith('assets/') ? FOREVER : 'no-cache',
    vary: 'accept-encoding',
  });
}

/** Never cached: it contains the token of this start. */
function documentOf(context: Context, html: string): Response {
  const etag = `"${createHash('sha256').update(html).digest('base64url').slice(0, 27)}"`;
  const headers = { ...PAGE_HEADERS, 'cache-control': 'no-store', etag, vary: 'accept' };
  if (context.req.header('if-none-match') === etag) return context.body(null, 304, headers);
  return context.body(html, 200, { ...headers, 'content-type': 'text/html; charset=utf-8' });
}

/** What the page may do with this server. `token`: it asks its user for a credential first. */
type PageMode = 'read-only' | 'write' | 'token';

interface PageFacts {
  /** Where the app is mounted, with a slash at both ends. */
  base: string;
  /** The page sends this with its writes. Empty where it may not write, or needs a credential. */
  token: string;
  mode: PageMode;
  version: string;
}

/** Fills the placeholders of `web/index.html` with values that only the running server knows. */
function fillPage(html: string, { base, token, mode, version }: PageFacts, hints: string): string {
  let filled = setAttribute(html, '<base href="', escapeHtml(base));
  for (const [name, value] of Object.entries({ token, mode, version })) {
    filled = setAttribute(filled, `<meta name="troupe-${name}" content="`, escapeHtml(value));
  }
  return filled.replace('</head>', () => `${hints}</head>`);
}

/** Shown in a checkout without a built page. */
function missingPage(base: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <base href="${escapeHtml(base)}">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Troupe</title>
  </head>
  <body>
    <h1>The page is not built</h1>
    <p>The runtime and its API are running. To see the page, run <code>npm run build:web</code> in the checkout and load this again.</p>
    <p><a href="api/openapi.json">The API</a></p>
  </body>
</html>
`;
}

/** Sets the attribute value between `opening` and the next quotation mark. */
function setAttribute(html: string, opening: string, value: string): string {
  const at = html.indexOf(opening);
  const end = html.indexOf('"', at + opening.length);
  return at < 0 || end < 0 ? html : html.slice(0, at + opening.length) + value + html.slice(end);
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => ENTITIES[mark] ?? mark);
}
