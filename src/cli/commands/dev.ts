import { once } from 'node:events';
import { relative, resolve } from 'node:path';
import { toTroupeError } from '../../base/errors.ts';
import type { HttpServer } from '../../http/api/index.ts';
import type { Troupe } from '../../library/troupe.ts';
import { demoAgents, findAgents, type FoundAgents } from '../client/find-agents.ts';
import { changesText } from '../process/definition-changes.ts';
import { readEnvFile } from '../process/env-file.ts';
import { createFreshImport } from '../process/fresh-import.ts';
import { onInterrupt } from '../process/interrupt.ts';
import { openBrowser } from '../process/open-browser.ts';
import { createDevOpener, MEMORY, type OpenDevOptions } from '../process/open-dev.ts';
import { createReloader, type ReloadReport } from '../process/reloader.ts';
import { watchFiles } from '../process/watch-files.ts';
import { count, errorText, paint, print, printJson, table } from '../render/output.ts';

interface DevOptions extends OpenDevOptions {
  port: number;
  open?: boolean;
  demo: boolean;
  reload: boolean;
  json?: boolean;
}

/** Runs the agents and the API until interrupted. */
export async function dev(file: string | undefined, options: DevOptions): Promise<void> {
  const { port, host, data, readOnly, json } = options;
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
  const first = await opener.open(found);
  const failures: unknown[] = [];
  function fail(error: unknown): void {
    failures.push(error);
    stop.abort();
  }
  const reloader = createReloader(first, {
    load: async () => (await load()) ?? found,
    open: opener.open,
    report: (report) => showReload(found.file, report, json),
    onEnd: fail,
  });
  try {
    const server = await serveHttp(reloader, { host, port });
    opener.announce(server.url);
    if (reloads) watched.start(() => void reloader.reload().catch(fail));
    const page = `${server.url}/`;
    if (json) printJson({ url: server.url, page, data: data === MEMORY ? data : resolve(data) });
    else showBanner(server, found, { ...options, hasEnv });
    if (options.open) await openBrowser(page);
    if (found.file === null && options.demo && !json && !readOnly) void showDemo(first.troupe, stop.signal);
    await stopped;
    // Both close at once: turns finish their step while open requests are answered.
    await Promise.all([server.close(), reloader.close()]);
    if (failures.length > 0) throw failures[0];
  } finally {
    await reloader.close();
    dispose();
  }
}

/** What is only in memory, or in a recording, would not outlive a reload. */
function canReload({ reload, data, record, replay }: DevOptions): boolean {
  return reload && data !== MEMORY && record === undefined && replay === undefined;
}

/** The agents file and the scripts of scripted agents. What the file imports is known only while it is imported. */
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

/** Gives the demo company's page something to show. A failure here does not stop the server. */
async function showDemo(troupe: Troupe, signal: AbortSignal): Promise<void> {
  const { playDemo } = await import('../demo/demo-story.ts');
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
