import { readFileSync } from 'node:fs';

/**
 * The layer rules of `src`, and their checker. The checker works on plain text so that small examples can test it.
 * Paths are relative to `src`. A layer is a room of `src`, a folder of the room `library`, or a file with a rule of its own.
 */
export interface SourceFile {
  path: string;
  text: string;
}

interface Import {
  to: string;
  typeOnly: boolean;
}

interface Layer {
  /** Layers or single files that it may import, beside itself. */
  may: readonly string[];
  /** Layers from which it may import types only. */
  mayTypes?: readonly string[];
  /** Allowed npm packages and node: modules. Absent: any. */
  packages?: readonly string[];
  /** Forbids clock, randomness and I/O. */
  pure?: true;
}

const PORTS = [
  'store/store.ts',
  'store/conversation-keys.ts',
  'store/standings.ts',
  'store/passages.ts',
  'queue/router.ts',
  'queue/broadcast.ts',
  'queue/admission.ts',
  'providers/provider.ts',
  'providers/embedder.ts',
  'providers/prices.ts',
  'providers/thoughts.ts',
  'providers/call-text.ts',
  'tools',
];

const LAYERS: Record<string, Layer> = {
  /** What every room may use: errors, clock, logs, files, processes, the network. Pure rooms name the file. */
  base: { may: [] },
  events: { may: ['base/errors.ts'], packages: ['zod'] },
  machines: { may: ['events', 'base/errors.ts'], packages: ['xstate', 'zod'], pure: true },
  context: {
    may: [
      'events',
      'base/errors.ts',
      'base/o200k-ranks.ts',
      'machines/compaction-fold.ts',
      'machines/directions.ts',
    ],
    packages: ['unhomoglyph', 'zod', 'node:crypto'],
    pure: true,
  },
  store: { may: ['base', 'events'] },
  queue: { may: ['base', 'events'] },
  providers: { may: ['base', 'events'] },
  tools: { may: ['base', 'events'] },
  actors: { may: ['base', 'events', 'machines', 'context', ...PORTS] },
  'library/message.ts': { may: ['events'], packages: [] },
  'library/conversation-handle.ts': { may: [], packages: [], mayTypes: ['events', 'library/troupe.ts'] },
  'library/access': { may: ['base', 'events'] },
  'library/import': { may: ['base', 'events'] },
  'library/integrations': {
    may: [
      'base',
      'events',
      'providers',
      'library/access',
      'library/import',
      'library/integrations/database.ts',
      'library/integrations/testing.ts',
    ],
  },
  /** What suites, fakes and tests of conversations outside `src` stand on. */
  'library/integrations/testing.ts': {
    may: ['events', 'machines', 'context', 'tools', 'actors', 'library/projection'],
  },
  /** What a database outside `src` stands on. */
  'library/integrations/database.ts': { may: ['base', 'events', 'store', 'queue'] },
  'library/inspect': { may: ['base', 'events', 'machines', 'context', 'actors', ...PORTS] },
  'library/config': {
    may: [
      'base',
      'events',
      'machines',
      'context',
      'actors',
      'library/access',
      'library/routing',
      ...PORTS,
      'providers/settings.ts',
      'library/integrations/webhook-settings.ts',
      'library/integrations/door.ts',
      'providers/redact.ts',
    ],
  },
  /** Follows conversations of a running troupe, through its public interface. */
  'library/asking': { may: ['base', 'events', 'machines'], mayTypes: ['library/troupe.ts', 'actors'] },
  'library/facade': {
    may: [
      'base',
      'library/asking',
      'library/conversation-handle.ts',
      'events',
      'library/access',
      'actors',
      'library/import',
      'library/inspect',
      'library/integrations',
      'library/projection',
      ...PORTS,
    ],
    mayTypes: ['library/troupe.ts'],
  },
  /** Also runs in browsers. */
  'library/projection': {
    may: [
      'events/aspects.ts',
      'events/erased-words.ts',
      'events/kinds.ts',
      'events/message-text.ts',
      'machines/availability-fold.ts',
      'machines/compaction-fold.ts',
      'machines/directions.ts',
      'machines/membership.ts',
      'machines/task-events.ts',
    ],
    mayTypes: ['events'],
    packages: ['marked'],
    pure: true,
  },
  'library/routing': {
    may: ['base/errors.ts', 'events', 'machines'],
    packages: ['zod'],
    mayTypes: ['library/troupe.ts'],
  },
  http: {
    may: [
      'base',
      'library/asking',
      'library/conversation-handle.ts',
      'events',
      'library/access',
      'library/import',
      'library/projection',
      'library/integrations',
    ],
    mayTypes: ['library/troupe.ts'],
  },
};

/** The folders of a room, bottom first: a folder imports those before it. `.` is the room's own files. */
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  base: ['.', 'net'],
  context: ['text', 'budget', 'view', 'render', 'extract', 'summary', 'retrieve', 'cache', 'compaction', '.'],
  store: ['.', 'documents', 'mongo', 'sqlite'],
  queue: ['.', 'redis', 'bullmq'],
  providers: ['.', 'ai-sdk', 'anthropic', 'openai'],
  tools: ['.', 'builtin', 'mcp'],
  cli: ['demo', 'init', 'process', 'client', 'render', 'evals', 'commands', '.'],
  http: ['.', 'page', 'routes', 'api'],
  library: [
    'projection',
    'access',
    'import',
    'integrations',
    'inspect',
    '.',
    'asking',
    'routing',
    'config',
    'facade',
    'runtime',
  ],
  actors: [
    'log',
    'actor',
    'conversations',
    'erasure',
    'attempt',
    'tasks',
    'turn',
    ...featureFolders(),
    'features',
    'engine',
  ],
};

/** The folders of the features of a turn, as their list names them: none imports another above it. */
function featureFolders(): string[] {
  const features = readFileSync(new URL('../src/actors/features/features.ts', import.meta.url), 'utf8');
  return [...features.matchAll(/from '\.\/(\w[\w-]*)\/feature\.ts'/g)].map(([, name]) => `features/${name}`);
}

/** Layers that may import everything but the command line. */
const FREE_FOLDERS: readonly string[] = ['cli', 'library/runtime', 'library/troupe.ts'];
const ENTRY_POINT = 'cli.ts';
/** Only these import concrete adapters. */
const COMPOSERS: readonly string[] = ['library/integrations/database.ts', 'library/runtime', 'cli.ts', 'cli'];
const ADAPTER =
  /^(?:store\/(?:[^/]+\/|sqlite|mongo)|queue\/(?!(?:router|broadcast|admission)\.ts$)|providers\/(?:[^/]+\/|scripted))/;

const IMPURE: readonly RegExp[] = [
  /\bDate\.now\b/,
  /\bnew Date\b(?!\(\s*[^\s)])/,
  /\bMath\.random\b/,
  /\bperformance\.\w/,
  /\brandom(?:UUID|Bytes|Int|FillSync|Fill)\b/,
  /\bgetRandomValues\b/,
  /\bset(?:Timeout|Interval|Immediate)\b/,
  /\bprocess\.\w/,
  /\bconsole\.\w/,
  /\bfetch\(/,
];

/** The only file that loads a package of `packages/` by name. */
const PACKAGE_LOADERS: Readonly<Record<string, string>> = {
  '@troupe/agents': 'providers/agents-package.ts',
  '@troupe/doors': 'library/runtime/doors.ts',
  '@troupe/doors/stdio': 'library/runtime/doors.ts',
  '@troupe/evals/command': 'cli/evals/evals-package.ts',
  '@troupe/importers': 'library/import/importers.ts',
  '@troupe/nostr': 'library/integrations/nostr.ts',
  '@troupe/postgres': 'library/runtime/services.ts',
};
/** The only file of a package that imports the core, and what it may import: `troupe/integrations` and `troupe`. */
const SEAM = { file: 'src/troupe.ts', cores: ['src/library/integrations/index.ts', 'src/index.ts'] };
/** What a door imports of the API, in a file of its own: clients at stdin and stdout need none of it. */
const HTTP_SEAM = { file: 'src/http.ts', cores: ['src/http/api/index.ts'] };
/** Packages that stand on another part of the public API. */
const OTHER_CORES: Readonly<Record<string, readonly string[]>> = {
  'packages/client/': ['src/http/api/client.ts'],
  // It checks the logs of what it plays.
  'packages/evals/': [...SEAM.cores, 'packages/testing/src/index.ts'],
};

export function checkLayers(files: readonly SourceFile[]): string[] {
  return [...files.flatMap(checkFile), ...findCycles(files)];
}

/**
 * The rules of `packages/NAME/src`, with paths from the root: a package imports its own files, npm packages, and the
 * seam.
 */
export function checkPackages(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const home = /^packages\/[^/]+\//.exec(path)?.[0] ?? '';
    const isHttp = path === `${home}${HTTP_SEAM.file}`;
    const isSeam = isHttp || path === `${home}${SEAM.file}`;
    const cores = isHttp ? HTTP_SEAM.cores : (OTHER_CORES[home] ?? SEAM.cores);
    return importsOf(path, text, '').flatMap(({ to }) => {
      if (to.startsWith(`${home}src/`) || !/^(?:src|packages|test|troupe|@troupe)(?:\/|$)/.test(to))
        return [];
      if (isSeam && cores.includes(to)) return [];
      return [`${path} imports ${to}: a package imports ${list(cores)} only, in ${home}${SEAM.file}`];
    });
  });
}

function checkFile({ path, text }: SourceFile): string[] {
  const layer = LAYERS[layerOf(path)];
  if (!layer && path.includes('/') && !FREE_FOLDERS.includes(layerOf(path))) {
    return [`src/${path}: the folder ${layerOf(path)} has no rule in test/layers.ts`];
  }
  const impurities = layer?.pure
    ? IMPURE.flatMap((pattern) => pattern.exec(withoutStrings(text))?.[0] ?? [])
    : [];
  const { room, folder } = placeOf(path);
  if (FOLDERS[room] && !FOLDERS[room].includes(folder))
    return [`src/${path}: the folder ${folder} has no place in FOLDERS.${room} of test/layers.ts`];
  return [
    ...importsOf(path, text).flatMap((each) => [...checkImport(path, each), ...checkOrder(path, each)]),
    ...impurities.map(
      (found) => `src/${path} uses ${found}: ${layerOf(path)} is pure, take it as an argument`,
    ),
  ];
}

function checkImport(from: string, { to, typeOnly }: Import): string[] {
  const layer = LAYERS[layerOf(from)];
  if (to.startsWith('packages/') || to.startsWith('@troupe/')) {
    if (PACKAGE_LOADERS[to] === from) return [];
    return [`src/${from} imports ${to}: a package is loaded by its name, in its loader only`];
  }
  if (!to.startsWith('src/')) {
    const allowed = layer?.packages?.some((name) => to === name || to.startsWith(`${name}/`)) ?? true;
    return allowed
      ? []
      : [`src/${from} imports ${to}: ${layerOf(from)} may use ${list(layer?.packages)} only`];
  }
  const target = to.slice('src/'.length);
  const at = `src/${from} imports ${to}`;
  if (target === ENTRY_POINT) return [`${at}: no file may import the command line`];
  if (layerOf(target) === layerOf(from)) return [];
  if (ADAPTER.test(target) && !COMPOSERS.includes(layerOf(from))) {
    return [`${at}: only ${COMPOSERS.join(', ')} may import an adapter`];
  }
  if (!layer || covers(layer.may, target)) return [];
  if (covers(layer.mayTypes ?? [], target)) {
    return typeOnly ? [] : [`${at}: ${layerOf(from)} may import only types of it (import type)`];
  }
  const types = layer.mayTypes ? `, and types of ${layer.mayTypes.join(', ')}` : '';
  return [`${at}: ${layerOf(from)} may import only ${list(layer.may)}${types}`];
}

/** Inside a room arrows run one way. */
function checkOrder(from: string, { to }: Import): string[] {
  if (!to.startsWith('src/')) return [];
  const [here, there] = [placeOf(from), placeOf(to.slice('src/'.length))];
  const order = here.room === there.room ? FOLDERS[here.room] : undefined;
  if (!order || order.indexOf(there.folder) <= order.indexOf(here.folder)) return [];
  return [`src/${from} imports ${to}: ${here.folder} is below ${there.folder} in the room ${here.room}`];
}

function placeOf(path: string): { room: string; folder: string } {
  const [room = '', ...rest] = path.split('/');
  return { room, folder: rest.slice(0, -1).join('/') || '.' };
}

function covers(allowed: readonly string[], target: string): boolean {
  return allowed.includes(target) || allowed.includes(layerOf(target));
}

function list(names: readonly string[] = []): string {
  return names.length > 0 ? names.join(', ') : 'nothing';
}

/** The longest path with a rule, else the room, or the folder of the library. */
function layerOf(path: string): string {
  const parts = path.split('/');
  for (let length = parts.length; length > 0; length -= 1) {
    const name = parts.slice(0, length).join('/');
    if (name in LAYERS || FREE_FOLDERS.includes(name)) return name;
  }
  return parts.slice(0, parts[0] === 'library' && parts.length > 2 ? 2 : 1).join('/');
}

/** Finds import cycles between files, including type imports: files in a cycle cannot be understood apart. */
function findCycles(files: readonly SourceFile[]): string[] {
  const edges = new Map<string, string[]>();
  for (const { path, text } of files) {
    const targets = importsOf(path, text).flatMap(({ to }) => (to.startsWith('src/') ? [to.slice(4)] : []));
    edges.set(path, [...new Set(targets)]);
  }
  const cycles: string[] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  function visit(path: string): void {
    const start = trail.indexOf(path);
    if (start >= 0) {
      const cycle = [...trail.slice(start), path].map((each) => `src/${each}`);
      cycles.push(`import cycle: ${cycle.join(' -> ')}`);
    }
    if (start >= 0 || done.has(path)) return;
    trail.push(path);
    for (const next of edges.get(path) ?? []) visit(next);
    trail.pop();
    done.add(path);
  }
  for (const { path } of files) visit(path);
  return cycles;
}

const STATEMENT =
  /(?<=^|[;}])[ \t]*(?:import|export)\b(?:\s+(type)\b(?!\s*(?:,|from\b)))?(?:[\w$\s,*{}]*?\bfrom\b)?\s*['"]([^'"\n]+)['"]/gm;
const CALL = /\bimport\(\s*['"]([^'"\n]+)['"]/.source;

/** Returns the imports of a file: own files as `src/…`, everything else as written. */
function importsOf(path: string, text: string, root = 'src/'): Import[] {
  const code = withoutComments(text);
  const statements = [...code.matchAll(STATEMENT)].map((match) => ({
    to: match[2] ?? '',
    typeOnly: match[1] === 'type',
  }));
  const calls = [...code.matchAll(CALL_OR_TEXT)].flatMap(({ 1: to }) =>
    to ? [{ to, typeOnly: false }] : [],
  );
  return [...statements, ...calls].map(({ to, typeOnly }) => ({
    to: resolveImport(root + path, to),
    typeOnly,
  }));
}

function resolveImport(from: string, to: string): string {
  if (!to.startsWith('.')) return to;
  const { pathname } = new URL(to, `file:///${from}`);
  return pathname.slice(1);
}

const TEXT = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/.source;
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//.source;
const TEXT_OR_COMMENT = new RegExp(`(${TEXT})|${COMMENT}`, 'g');
const CALL_OR_TEXT = new RegExp(`${CALL}|${TEXT}`, 'g');

function withoutComments(text: string): string {
  return text.replace(TEXT_OR_COMMENT, (_, kept: string | undefined) => kept ?? ' ');
}

/** Removes comments and plain strings. Template strings stay, since they contain code. */
function withoutStrings(text: string): string {
  return withoutComments(text).replace(new RegExp(TEXT, 'g'), (kept) => (kept.startsWith('`') ? kept : "''"));
}
