/** The manifest of the built page, as Vite writes it: chunks by the path of their source. */
export type PageManifest = Readonly<Record<string, Chunk>>;

interface Chunk {
  file: string;
  isEntry?: boolean;
  imports?: readonly string[];
  css?: readonly string[];
}

/** Newest events that come with the snapshot. `NEWEST_EVENTS` of the page asks for as many, else the answer is not used. */
const NEWEST_EVENTS = 40;

/**
 * Elements for the head of the document that name what the asked view needs, so that the browser asks for all of it at
 * once: without them it learns of each file from the one before. `path` and `query` are those of the request, below the
 * mount. The answers of the API are named only if the page may read without a credential.
 */
export function viewHints(
  manifest: PageManifest,
  { path, query, isReadable }: { path: string; query: string; isReadable: boolean },
): string {
  const [first = '', id] = path.split('/');
  const conversation = first === 'c' && id !== undefined ? decoded(id) : null;
  if (conversation === null) {
    const answer = isReadable && path === '' && query === '' ? [preload('api/inbox?limit=50')] : [];
    return path === '' ? [...answer, ...filesOf(manifest, HOME)].join('') : '';
  }
  const snapshot = `api/conversations/${encodeURIComponent(conversation)}/snapshot?events=${NEWEST_EVENTS}`;
  return [...(isReadable ? [preload(snapshot)] : []), ...filesOf(manifest, CONVERSATION)].join('');
}

const HOME = ['src/parts/home.tsx'];
const CONVERSATION = [
  'src/parts/conversation.tsx',
  'src/parts/detail/detail.tsx',
  'src/parts/timeline/timeline.tsx',
];

/** The scripts and styles of parts with all that they import. What the document itself names is left out. */
function filesOf(manifest: PageManifest, parts: readonly string[]): string[] {
  const files = new Set<string>();
  const seen = new Set<string>();
  const waiting = [...parts];
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const chunk = manifest[name];
    if (seen.has(name) || !chunk || chunk.isEntry) continue;
    seen.add(name);
    for (const style of chunk.css ?? []) files.add(`<link rel="stylesheet" crossorigin href="./${style}">`);
    files.add(`<link rel="modulepreload" crossorigin href="./${chunk.file}">`);
    waiting.push(...(chunk.imports ?? []));
  }
  return [...files];
}

/** As the page's `fetch` asks: same mode, same credentials. An ampersand does not occur. */
function preload(href: string): string {
  return `<link rel="preload" as="fetch" crossorigin href="${href}">`;
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
