import nodeModule from 'node:module';
import { once } from 'node:events';
import { relative, resolve } from 'node:path';
import { toTroupeError, TroupeError } from '../../base/errors.ts';
import type { HttpServer } from '../../http/api/index.ts';
import type { Troupe } from '../../library/troupe.ts';
import { demoAgents, findAgents, type FoundAgents, rememberAgents } from '../process/find-agents.ts';
import { onInterrupt, openBrowser } from '../process/terminal.ts';
import { count, errorText, paint, print, printJson, table } from '../render/output.ts';
import { randomBytes } from 'node:crypto';
import { systemClock } from '../../base/clock.ts';
import type { Durability } from '../../store/sqlite/sqlite-driver.ts';
import { version } from '../process/version.ts';
import { type OperatorFlags, readOperators, readTls, type TlsFlags } from '../process/operator-flags.ts';
import type { Hono } from 'hono';
import { inspect } from 'node:util';
import type { AgentInput } from '../../library/config/agent-input.ts';
import type { TroupeInput } from '../../library/config/agents-file.ts';
import { openApp, type OpenedApp } from '../../library/config/app.ts';
import { existsSync, statSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { hasHooks, importAsModule, type ImportModule } from '../../library/config/load-agents-file.ts';

interface DevOptions extends OpenDevOptions, TlsFlags {
  port: number;
  open?: boolean;
  demo: boolean;
  reload: boolean;
  json?: boolean;
}

/** Runs the agents and the API until interrupted. */
export async function dev(file: string | undefined, options: DevOptions): Promise<void> {
  const { port, host, data, readOnly, json } = options;
  const tls = readTls(options);
  const hasEnv = readEnvFile();
  const reloads = canReload(options);
  using watched = watchFiles();
  const importModule = reloads ? createFreshImport(watched.add) : undefined;
  async function load(): Promise<FoundAgents | null> {
    const agents = await findAgents(file, importModule);
    for (const path of agents ? filesOf(agents) : []) watched.add(path);
    return agents;
  }
  const found = (await load()) ?? (await demoAgents());
  const { serveHttp } = await import('../../http/api/index.ts');
  using opener = await createDevOpener(options);
  const stop = new AbortController();
  const stopped = once(stop.signal, 'abort');
  const dispose = onInterrupt(() => stop.abort());
  const first = await opener.open(found, await openApp(found.definition));
  const failures: unknown[] = [];
  function fail(error: unknown): void {
    failures.push(error);
    stop.abort();
  }
  const reloader = createReloader(first, {
    load: async () => (await load()) ?? found,
    openApp,
    open: opener.open,
    report: (report) => showReload(found.file, report, json),
    onEnd: fail,
  });
  try {
    const server = await serveHttp(reloader, { host, port, tls });
    opener.announce(server.url);
    if (reloads) watched.start(() => void reloader.reload().catch(fail));
    const page = `${server.url}/`;
    if (json) printJson({ url: server.url, page, data: data === MEMORY ? data : resolve(data) });
    else showBanner(server, found, { ...options, hasEnv });
    if (options.open) await openBrowser(page);
    if (found.file === null && options.demo && !json && !readOnly) void showDemo(first.troupe, stop.signal);
    await stopped;
    // Both close at the same time: turns finish their step while open requests are answered.
    await Promise.all([server.close(), reloader.close()]);
    if (failures.length > 0) throw failures[0];
  } finally {
    await reloader.close();
    dispose();
  }
}

/** A reload would lose data that is only in memory, and would disturb a recording or replay. */
function canReload({ reload, data, record, replay }: DevOptions): boolean {
  return reload && data !== MEMORY && record === undefined && replay === undefined;
}

/** The agents file and the scripts of scripted agents. Files that the agents file imports become known while it is imported. */
function filesOf({ file, definition: { agents, templates = [] } }: FoundAgents): string[] {
  const scripts = [...agents, ...templates].flatMap((agent) =>
    agent.provider === 'scripted' && typeof agent.script === 'string' ? [agent.script] : [],
  );
  return file === null ? [] : [file, ...scripts];
}

function showReload(file: string | null, report: ReloadReport, asJson = false): void {
  const name = relative('', file ?? '');
  if (report.type === 'reloaded') {
    if (asJson) printJson({ reloaded: name, ...report.changes });
    else print(`${paint('green', 'reloaded')} ${name}: ${changesText(report.changes)}`);
    return;
  }
  const { code, message, data } = toTroupeError(report.error);
  if (asJson) printJson({ reloadFailed: name, error: { code, message, data } });
  else process.stderr.write(`${errorText({ code, message, data }, false)}the agents from before go on\n`);
}

/** Fills the demo company's page with a conversation. A failure here does not stop the server. */
async function showDemo(troupe: Troupe, signal: AbortSignal): Promise<void> {
  const { playDemo } = await import('../demo/demo-company.ts');
  await playDemo(troupe, signal).catch((error: unknown) => {
    if (!signal.aborted) process.stderr.write(`the demo stopped: ${String(error)}\n`);
  });
}

function showBanner(
  { url, port }: HttpServer,
  { definition, file }: FoundAgents,
  options: DevOptions & { hasEnv: boolean },
): void {
  const agents = definition.agents.map(({ id }) => `@${id}`).join(' ');
  const isBusy = options.port !== 0 && port !== options.port;
  const rows = [
    ['Page', paint('cyan', `${url}/`) + (isBusy ? ` (port ${options.port} is busy)` : '')],
    ['API', `${url}/api/openapi.json`],
    ['Data', options.data === MEMORY ? 'in memory, lost on exit' : resolve(options.data)],
    ['Agents', `${agents} (${file ?? 'demo company; "npx troupe init" starts your own'})`],
    ...(options.hasEnv ? [['Variables', 'also from .env']] : []),
  ];
  print(paint('bold', `troupe: ${count(definition.agents.length, 'agent')} ready`));
  print(table(rows.map(([name = '', value = '']) => [`  ${paint('dim', name)}`, value])));
  const target = `${options.data === '.troupe' ? '' : ` --url ${url}`}`;
  print(`Try: npx troupe send hello "Plan a small release"${target} --wait`);
  print(paint('dim', 'Ctrl-C finishes the current steps and stops; press it twice to stop at once.'));
}

interface OpenDevOptions extends OperatorFlags {
  host: string;
  data: string;
  concurrency?: number;
  durability?: Durability;
  record?: string;
  replay?: string[];
  readOnly?: boolean;
}

interface DevTroupe extends OpenTroupe {
  troupe: Troupe;
}

/**
 * Holds the lock of the data directory, even between two troupes: a command at that moment finds the server's URL and waits
 * for its answer. With a lock per troupe, the command would open the data itself, and the server could not.
 */
interface DevOpener extends Disposable {
  /**
   * Opens agents on the data directory, with an API that admits callers of `host`. One troupe at a time. If it fails, it
   * closes `openedApp`.
   */
  open: (found: FoundAgents, openedApp: OpenedApp) => Promise<DevTroupe>;
  /** Lets commands on this machine find the server. */
  announce(url: string): void;
  /** Releases the data directory. */
  [Symbol.dispose](): void;
}

/** Data that is in memory only. */
const MEMORY = ':memory:';

/** Throws `data_busy`, `data_unwritable`. */
async function createDevOpener(options: OpenDevOptions): Promise<DevOpener> {
  const { host, data, concurrency, durability, record, replay, readOnly } = options;
  const [
    { openTroupe },
    { createApp, isLoopback },
    { createMetrics },
    { readToken },
    { callerOptions, requireCredentials },
    { lockDataDir, writeServerInfo },
  ] = await Promise.all([
    import('../../library/runtime/create-troupe.ts'),
    import('../../http/api/index.ts'),
    import('../../http/metrics.ts'),
    import('../../http/server-token.ts'),
    import('../process/credentials.ts'),
    import('../../store/sqlite/data-lock.ts'),
  ]);
  const token = readToken(process.env);
  // Output stays human-readable unless log lines are requested.
  const { onError, ...operators } = await readOperators(options, process.env, null);
  // The same for all reloads, so that an open page keeps working.
  const writeToken = randomBytes(24).toString('base64url');
  const lock = data === MEMORY ? undefined : lockDataDir(data);

  async function open(found: FoundAgents, openedApp: OpenedApp): Promise<DevTroupe> {
    try {
      return await openWith(found, openedApp);
    } catch (error) {
      await openedApp.close();
      throw error;
    }
  }

  async function openWith(found: FoundAgents, openedApp: OpenedApp): Promise<DevTroupe> {
    const ending = new AbortController();
    const metrics = createMetrics({ version: version() });
    const troupe = await openTroupe(found.definition, {
      data,
      lock,
      openedApp,
      metrics,
      ...operators,
      record,
      replay,
      ...(concurrency !== undefined && { concurrency }),
      ...(durability !== undefined && { durability }),
    });
    async function close(): Promise<void> {
      ending.abort();
      await troupe.close();
    }
    try {
      const { access } = found.definition;
      const isOpen = isLoopback(host);
      const why = `${host} is reachable from other machines`;
      if (!isOpen) await requireCredentials(troupe, { token, access, now: systemClock.now(), why });
      const app = createApp(troupe, {
        signal: ending.signal,
        ...callerOptions(troupe, token, access),
        keyless: isOpen ? 'local' : 'refused',
        metrics,
        onError,
        readOnly,
        version: version(),
        writeToken,
      });
      if (lock) rememberAgents(data, found);
      return { found, troupe, openedApp, fetch: app.fetch, close };
    } catch (error) {
      await close();
      throw error;
    }
  }
  return {
    open,
    announce: (url) => lock && writeServerInfo(data, { pid: process.pid, url }),
    [Symbol.dispose]: () => lock?.release(),
  };
}

interface OpenTroupe {
  found: FoundAgents;
  /** What its tools get as `app`. Whoever closes the troupe closes it afterwards. */
  openedApp: OpenedApp;
  fetch: Hono['fetch'];
  /** Ends streams, and lets turns finish their step. */
  close(): Promise<void>;
}

type ReloadReport = { type: 'reloaded'; changes: DefinitionChanges } | { type: 'failed'; error: unknown };

interface ReloaderParts {
  load: () => Promise<FoundAgents>;
  openApp: (definition: TroupeInput) => Promise<OpenedApp>;
  open: (found: FoundAgents, openedApp: OpenedApp) => Promise<OpenTroupe>;
  report: (report: ReloadReport) => void;
  /** Neither the new nor the old troupe can be opened. */
  onEnd: (error: unknown) => void;
}

interface Reloader {
  /** Answers with the current troupe; waits while it is being replaced. */
  fetch: Hono['fetch'];
  /** Replaces the troupe by one with the current definition, on the same data. If the definition is wrong, the old one stays. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

function createReloader(first: OpenTroupe, { load, openApp, open, report, onEnd }: ReloaderParts): Reloader {
  let current = Promise.resolve(first);
  let work = Promise.resolve();
  let isQueued = false;

  async function replace(before: OpenTroupe, next: FoundAgents, openedApp: OpenedApp): Promise<OpenTroupe> {
    // Two troupes cannot share a database.
    await before.close();
    let opened: OpenTroupe;
    try {
      opened = await open(next, openedApp);
    } catch (error) {
      report({ type: 'failed', error });
      return open(before.found, before.openedApp);
    }
    await closeApp(before.openedApp);
    report({ type: 'reloaded', changes: changesBetween(before.found.definition, next.definition) });
    return opened;
  }

  async function closeApp({ close }: OpenedApp): Promise<void> {
    await close().catch((error: unknown) => report({ type: 'failed', error }));
  }

  async function reloadNow(): Promise<void> {
    isQueued = false;
    const before = await current;
    let next: FoundAgents;
    let openedApp: OpenedApp;
    try {
      next = await load();
      openedApp = await openApp(next.definition);
    } catch (error) {
      report({ type: 'failed', error });
      return;
    }
    current = replace(before, next, openedApp);
    await current.catch(onEnd);
  }

  return {
    fetch: async (...request) => (await current).fetch(...request),
    async reload() {
      // All changes during a reload lead to one more reload.
      if (!isQueued) work = work.then(reloadNow);
      isQueued = true;
      await work;
    },
    async close() {
      await work;
      // If no troupe could be opened, `onEnd` has already been told the reason.
      const open = await current.catch(() => null);
      await open?.close();
      await open?.openedApp.close();
    },
  };
}

/** How a new definition differs from the previous one: its agents, by id. */
interface DefinitionChanges {
  added: string[];
  removed: string[];
  changed: string[];
  /** Names of other differing fields of the definition, such as `tools` and `limits`. */
  settings: string[];
}

function changesBetween(before: TroupeInput, after: TroupeInput): DefinitionChanges {
  const old = textsOf(before);
  const now = textsOf(after);
  return {
    added: [...now.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !now.has(id)),
    changed: [...now.keys()].filter((id) => old.has(id) && old.get(id) !== now.get(id)),
    settings: settingsBetween(before, after),
  };
}

function settingsBetween(before: TroupeInput, after: TroupeInput): string[] {
  const [old, now] = [before, after] as unknown as [Record<string, unknown>, Record<string, unknown>];
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  names.delete('agents');
  return [...names].filter((name) => shownAs(old[name]) !== shownAs(now[name])).toSorted();
}

function changesText({ added, removed, changed, settings }: DefinitionChanges): string {
  const parts = Object.entries({ new: added, removed, changed })
    .filter(([, ids]) => ids.length > 0)
    .map(([what, ids]) => `${what}: ${ids.map((id) => `@${id}`).join(' ')}`);
  if (settings.length > 0) parts.push(`settings: ${settings.join(' ')}`);
  return parts.join('; ') || 'no agent and no setting has changed';
}

function textsOf({ agents }: TroupeInput): Map<string, string> {
  return new Map(agents.map((agent) => [agent.id, textOf(agent)]));
}

function textOf({ instructions, ...agent }: AgentInput): string {
  return `${String(instructions)}\n${shownAs(agent)}`;
}

/** Not JSON, because models and schemas of other libraries may contain cycles. */
function shownAs(value: unknown): string {
  return `${inspect(value, { depth: 8, maxArrayLength: null, maxStringLength: null })}\n${codeIn(value)}`;
}

/** Depth at which functions stand in an agent's script. */
const CODE_DEPTH = 3;

/** The code of functions within plain objects and lists. `inspect` shows only their names. */
function codeIn(value: unknown, depth = CODE_DEPTH): string {
  if (typeof value === 'function') return `${String(value)}\n`;
  if (depth === 0 || (!Array.isArray(value) && !isPlain(value))) return '';
  return Object.values(value)
    .map((part) => codeIn(part, depth - 1))
    .join('');
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

const ENV_FILE = '.env';

/** Reads `.env` of this directory with Node's own parser. Variables that are already set win. Returns whether the file exists. */
function readEnvFile(): boolean {
  if (!existsSync(ENV_FILE)) return false;
  try {
    loadEnvFile(ENV_FILE);
    return true;
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'it is not text';
    throw new TroupeError('config_invalid', `cannot read .env (${reason}); mend or remove it`, {}, { cause });
  }
}

/** Marks the modules of one import, because Node keeps every module under its URL forever. */
const MARK = 'troupe-reload';
/** Troupe itself must not be loaded twice. */
const OWN_FILES = new URL('../../', import.meta.url).href;

/**
 * Imports modules, and all local files that they import, in their current version. `onFile` is called for each file before it
 * is read. Where no hook can resolve modules, only the imported module itself is current.
 */
function createFreshImport(onFile: (file: string) => void): ImportModule {
  let round = 0;
  const hooks: Parameters<typeof nodeModule.registerHooks>[0] = {
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      const mark = markOf(context.parentURL);
      if (mark === null || !isLocal(resolved.url)) return resolved;
      onFile(fileURLToPath(resolved.url));
      return { ...resolved, url: marked(resolved.url, mark) };
    },
  };
  if (hasHooks()) nodeModule.registerHooks(hooks);
  return async function importFresh(url) {
    round += 1;
    onFile(fileURLToPath(url));
    return importAsModule(marked(url, String(round)));
  };
}

function isLocal(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/') && !url.startsWith(OWN_FILES);
}

function marked(url: string, mark: string): string {
  const target = new URL(url);
  target.searchParams.set(MARK, mark);
  return target.href;
}

function markOf(url = pathToFileURL('/').href): string | null {
  return URL.parse(url)?.searchParams.get(MARK) ?? null;
}

/** Polled, because many editors replace a file when they save it, and mounted folders send no notifications. */
const POLL_MS = 250;

interface WatchedFiles extends Disposable {
  /** Adds a file that is about to be read: changes from now on are noticed. */
  add: (file: string) => void;
  /** Calls `onChange` when a file was changed, created or removed after it was added. */
  start(onChange: () => void): void;
}

function watchFiles(): WatchedFiles {
  const stamps = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;
  function check(onChange: () => void): void {
    const changed = [...stamps].filter(([file, stamp]) => stampOf(file) !== stamp);
    for (const [file] of changed) stamps.set(file, stampOf(file));
    if (changed.length > 0) onChange();
  }
  return {
    add(file) {
      if (!stamps.has(file)) stamps.set(file, stampOf(file));
    },
    start(onChange) {
      timer = setInterval(() => check(onChange), POLL_MS).unref();
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** Differs after the file was written or replaced. Empty if it does not exist. */
function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat ? [stat.mtimeMs, stat.ctimeMs, stat.size, stat.ino].join(' ') : '';
}
