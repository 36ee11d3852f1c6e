import { resolve } from 'node:path';
import { systemClock } from '../../clock.ts';
import type { HttpServer } from '../../http/index.ts';
import { demoAgents, findAgents, type FoundAgents, rememberAgents } from '../client/find-agents.ts';
import { onInterrupt } from '../process/interrupt.ts';
import { type OperatorFlags, readOperators } from '../process/operator-flags.ts';
import { count, paint, print, printJson, table } from '../render/output.ts';
import type { Troupe } from '../../troupe.ts';
import { version } from '../version.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

interface DevOptions extends OperatorFlags {
  port: number;
  host: string;
  data: string;
  concurrency?: number;
  record?: string;
  replay?: string[];
  readOnly?: boolean;
  open?: boolean;
  demo: boolean;
  json?: boolean;
}

const MEMORY = ':memory:';

/** Runs the agents and the API until interrupted. */
export async function dev(file: string | undefined, options: DevOptions): Promise<void> {
  const { port, host, data, concurrency, record, replay, readOnly, json } = options;
  const [
    { createTroupe },
    { createApp, isLoopback, serveHttp },
    { createMetrics },
    { readToken, requireCredentials },
    { writeServerInfo },
  ] = await Promise.all([
    import('../../runtime.ts'),
    import('../../http/index.ts'),
    import('../../http/metrics.ts'),
    import('../process/require-token.ts'),
    import('../../store/sqlite/server-info.ts'),
  ]);
  const token = readToken(process.env);
  // Output stays human-readable unless log lines are requested.
  const { onError, ...operators } = await readOperators(options, process.env, null);
  const found = (await findAgents(file)) ?? (await demoAgents());
  const stop = new AbortController();
  const stopped = once(stop.signal, 'abort');
  const dispose = onInterrupt(() => stop.abort());
  const metrics = createMetrics({ version: version() });
  const troupe = await createTroupe(found.definition, {
    data,
    metrics,
    ...operators,
    record,
    replay,
    ...(concurrency !== undefined && { concurrency }),
  });
  try {
    const { access } = found.definition;
    const isOpen = isLoopback(host);
    const why = `${host} is reachable from other machines`;
    if (!isOpen) await requireCredentials(troupe, { token, access, now: systemClock.now(), why });
    const app = createApp(troupe, {
      signal: stop.signal,
      token,
      authenticate: (credential) => troupe.authenticate(credential),
      keyless: isOpen ? 'local' : 'refused',
      cors: access?.cors,
      limits: access?.limits,
      traffic: access?.limits,
      metrics,
      onError,
      readOnly,
      version: version(),
    });
    const server = await serveHttp(app, { host, port });
    if (data !== MEMORY) {
      writeServerInfo(data, { pid: process.pid, url: server.url });
      rememberAgents(data, found);
    }
    const page = `${server.url}/`;
    if (json) printJson({ url: server.url, page, data: data === MEMORY ? data : resolve(data) });
    else showBanner(server, found, options);
    if (options.open) await openBrowser(page);
    if (found.file === null && options.demo && !json && !readOnly) void showDemo(troupe, stop.signal);
    await stopped;
    // Both close at once: turns finish their step while open requests are answered.
    await Promise.all([server.close(), troupe.close()]);
  } finally {
    await troupe.close();
    dispose();
  }
}

/** Gives the demo company's page something to show. A failure here does not stop the server. */
async function showDemo(troupe: Troupe, signal: AbortSignal): Promise<void> {
  const { playDemo } = await import('../demo/demo-story.ts');
  await playDemo(troupe, signal).catch((error: unknown) => {
    if (!signal.aborted) process.stderr.write(`the demo stopped: ${String(error)}\n`);
  });
}

function showBanner({ url, port }: HttpServer, { definition, file }: FoundAgents, options: DevOptions): void {
  const agents = definition.agents.map(({ id }) => `@${id}`).join(' ');
  const isBusy = options.port !== 0 && port !== options.port;
  const rows = [
    ['Page', paint('cyan', `${url}/`) + (isBusy ? ` (port ${options.port} is busy)` : '')],
    ['API', `${url}/api/openapi.json`],
    ['Data', options.data === MEMORY ? 'in memory, lost on exit' : resolve(options.data)],
    ['Agents', `${agents} (${file ?? 'demo company; write agents.ts for your own'})`],
  ];
  print(paint('bold', `troupe: ${count(definition.agents.length, 'agent')} ready`));
  print(table(rows.map(([name = '', value = '']) => [`  ${paint('dim', name)}`, value])));
  const target = `${options.data === '.troupe' ? '' : ` --url ${url}`}`;
  print(`Try: troupe send hello "Plan a small release"${target} --wait`);
  print(paint('dim', 'Ctrl-C finishes the current steps and stops; press it twice to stop at once.'));
}

const OPENERS: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/** Opens the browser if there is one, and reports a failure. */
async function openBrowser(url: string): Promise<void> {
  const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true });
  const problem = await new Promise<Error | null>((resolve) => {
    child.once('spawn', () => resolve(null));
    child.once('error', resolve);
  });
  if (problem)
    process.stderr.write(`no browser could be opened (${problem.message}); the page is at ${url}\n`);
  else child.unref();
}
