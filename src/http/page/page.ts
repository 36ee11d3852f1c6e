import { createHash } from 'node:crypto';
import type { Context, Hono } from 'hono';
import { codingsFor } from '../codings.ts';
import { isKeyless, checkHost, type GuardOptions, READS } from '../guard.ts';
import { readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { basePath } from 'hono/route';

export interface PageOptions {
  /** Folder of the built page, or false for an API without a page. Default: the page that comes with Troupe. */
  web?: string | false | undefined;
  /** Version shown on the page. */
  version?: string | undefined;
}

/** What a document may be about; see `isPageOf`. */
interface PageSubjects {
  /** Whether there is such a conversation and, unless null, such a turn. Asked only where nobody needs a credential. */
  hasSubject(conversation: string, turn: string | null): Promise<boolean>;
}

/** First path segments that never answer with the page. */
const NOT_THE_PAGE = new Set(['api', 'metrics', 'healthz', 'readyz']);
const NOSNIFF = { 'x-content-type-options': 'nosniff' };
/** Scripts and styles: the policies of the document hold for them, and a load has several. */
const IN_A_DOCUMENT = /^assets\/[^/]*\.(?:js|css)$/;
/** Headers of every document and file of a page. */
export const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' blob:; base-uri 'self'; frame-ancestors 'none'; form-action 'none'; object-src 'none'",
  ...NOSNIFF,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};
/** For files whose names change with their content. */
const FOREVER = 'public, max-age=31536000, immutable';

/**
 * Serves the page at the path where the app is mounted: its files, and its document for every other path, because the page
 * does its own routing. The document of a path that leads nowhere has the status 404; what it leads to is asked for only where the
 * asker may read it.
 *
 * The page is served before the guard. Where a credential is needed, the document holds no secret and asks the user for the
 * credential. Otherwise it contains the write token, and is served only under trusted host names.
 */
export function addPageRoutes(
  app: Hono,
  options: PageOptions & PageSubjects & { trust: GuardOptions },
): void {
  const { web = BUILT_PAGE, version = '', trust } = options;
  if (web === false) return;
  // A middleware, not a route: requests that it does not answer continue.
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
    const isFound = await isPageOf(path, facts.mode === 'token' ? null : options);
    return documentOf(context, html, isFound ? 200 : 404);
  });
}

/** Views beside home and conversations; `VIEWS` of `web/src/state/route.ts` has the same. */
const VIEWS = new Set(['', 'index.html', 'costs', 'routes', 'compare']);

/** Whether a path leads to a view, and to something that there is. `subjects` null: the latter may not be told. */
async function isPageOf(path: string, subjects: PageSubjects | null): Promise<boolean> {
  const [first = '', ...rest] = path.replace(/\/$/, '').split('/').map(decoded);
  if (rest.length === 0) return first !== null && VIEWS.has(first);
  const [conversation, t, turn = null] = rest;
  const isTurn = rest.length === 3 && t === 't' && turn !== null;
  if (first !== 'c' || !conversation || !(rest.length === 1 || isTurn)) return false;
  return subjects === null || subjects.hasSubject(conversation, turn === 'next' ? null : turn);
}

/** Empty in a folder without a manifest: the document then has no preload hints. */
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
    ...(IN_A_DOCUMENT.test(path) ? NOSNIFF : PAGE_HEADERS),
    'content-type': file.type,
    ...(file.encoding && { 'content-encoding': file.encoding }),
    'cache-control': path.startsWith('assets/') ? FOREVER : 'no-cache',
    vary: 'accept-encoding',
  });
}

/** Never cached: it contains the token of this start. */
function documentOf(context: Context, html: string, status: 200 | 404): Response {
  const etag = `"${createHash('sha256').update(html).digest('base64url').slice(0, 27)}"`;
  const headers = { ...PAGE_HEADERS, 'cache-control': 'no-store', etag, vary: 'accept' };
  if (status === 200 && context.req.header('if-none-match') === etag) return context.body(null, 304, headers);
  return context.body(html, status, { ...headers, 'content-type': 'text/html; charset=utf-8' });
}

/** What the page may do on this server. `token`: it first asks the user for a credential. */
type PageMode = 'read-only' | 'write' | 'token';

interface PageFacts {
  /** Where the app is mounted, with a slash at both ends. */
  base: string;
  /** Token that the page sends with its writes. Empty where it may not write, or needs a credential. */
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

/** The manifest of the built page, as Vite writes it. */
type PageManifest = Readonly<Record<string, Chunk>>;

interface Chunk {
  file: string;
  /** Keys of chunks that it needs before it runs. */
  imports?: readonly string[];
  name?: string;
  css?: readonly string[];
}

/** Number of newest events that come with the snapshot. It must equal `NEWEST_EVENTS` of the page, or the answer is not used. */
const NEWEST_EVENTS = 40;
/** What the list of conversations is drawn from, as the page asks for it. */
const HOME_ANSWERS = ['api/inbox?limit=50&urgent=500', 'api/queues', 'api/stuck?limit=200'];

/**
 * Elements for the head of the document that name the files and answers that the requested view needs, so that the browser
 * requests all at once; otherwise it would learn of each file from the one before. `path` and `query` are those of the
 * request, below the mount. Answers of the API are named only if the page may read without a credential.
 */
function viewHints(
  manifest: PageManifest,
  { path, query, isReadable }: { path: string; query: string; isReadable: boolean },
): string {
  const [first = '', id] = path.split('/');
  const conversation = first === 'c' && id !== undefined ? decoded(id) : null;
  if (conversation === null) {
    const answers = isReadable && path === '' && query === '' ? HOME_ANSWERS.map(preload) : [];
    return path === '' ? [...answers, ...filesOf(manifest, 'home')].join('') : '';
  }
  const snapshot = `api/conversations/${encodeURIComponent(conversation)}/snapshot?events=${NEWEST_EVENTS}`;
  return [...(isReadable ? [preload(snapshot)] : []), ...filesOf(manifest, 'conversation')].join('');
}

/** The script of a view, what it imports, and their styles, without `first`, which the document itself names. */
function filesOf(manifest: PageManifest, view: string): string[] {
  const chunk = Object.values(manifest).find(({ name }) => name === view);
  if (!chunk) return [];
  const imported = (chunk.imports ?? []).flatMap((key) => manifest[key] ?? []);
  const chunks = [...imported.filter(({ name }) => name !== 'first'), chunk];
  const styles = chunks.flatMap(({ css = [] }) => css);
  return [
    ...styles.map((style) => `<link rel="stylesheet" crossorigin href="./${style}">`),
    ...chunks.map(({ file }) => `<link rel="modulepreload" crossorigin href="./${file}">`),
  ];
}

/** A preload with the mode and credentials of the page's `fetch`; others would not be used. */
function preload(href: string): string {
  return `<link rel="preload" as="fetch" crossorigin href="${escapeHtml(href)}">`;
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

/** A file of the built page, in the form in which it is sent. */
interface WebFile {
  bytes: Uint8Array<ArrayBuffer>;
  type: string;
  /** Set for files that were compressed when the page was built. */
  encoding: 'br' | 'gzip' | null;
}

/** The same path from `src/http/page` in a checkout and from `dist/http/page` in the package. */
export const BUILT_PAGE = fileURLToPath(new URL('../../../dist/web/', import.meta.url));

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};
/** A file name, optionally in `assets`: never outside the folder, hidden or too long. */
const WEB_PATH = /^(?:assets\/)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;
/** In order of preference: the smaller file first. */
const COMPRESSED = [
  { encoding: 'br', suffix: '.br' },
  { encoding: 'gzip', suffix: '.gz' },
] as const;

/** Null for a missing file, or one that is not part of a page. */
export async function readWebFile(
  folder: string,
  path: string,
  accepted: ReadonlySet<string> = new Set(),
): Promise<WebFile | null> {
  const type = TYPES[extname(path)];
  if (type === undefined || !WEB_PATH.test(path)) return null;
  const file = join(folder, path);
  for (const { encoding, suffix } of COMPRESSED) {
    const bytes = accepted.has(encoding) ? await readIfThere(file + suffix) : null;
    if (bytes) return { bytes, type, encoding };
  }
  const bytes = await readIfThere(file);
  return bytes && { bytes, type, encoding: null };
}

async function readIfThere(file: string): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    return (await stat(file)).isFile() ? new Uint8Array(await readFile(file)) : null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}

/** Path prefix that a proxy has removed, as the proxy reports it. */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9._~-]+)*\/?$/;
const MAX_PREFIX_CHARS = 1_000;

/** Path at which browsers find the app, without a trailing slash. */
export function mountPath(context: Context): string {
  return `${prefixBefore(context)}${placeInHono(context)}`;
}

/** Path prefix that a proxy and another framework removed before Hono saw the path. */
export function prefixBefore(context: Context): string {
  return `${plainPath(context.req.header('x-forwarded-prefix'))}${strippedPath(context)}`;
}

/** Path of the mount within the request that Hono sees. */
export function placeInHono(context: Context): string {
  return basePath(context).replace(/(?<!\/)\/+$/, '');
}

/** Express and similar frameworks remove the mount's path from `url`, and keep the whole path in `originalUrl`. */
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

/** The path without its trailing slash; empty for a value that does not look like a path. */
function plainPath(text = ''): string {
  // Anchored at the start, because searching for the end would take quadratic time.
  if (text.length > MAX_PREFIX_CHARS || !PLAIN_PATH.test(text)) return '';
  return text.endsWith('/') ? text.slice(0, -1) : text;
}
