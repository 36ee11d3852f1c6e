import type { Tool as ListedTool } from '@modelcontextprotocol/client';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { type Connection, createConnection } from './connection.ts';
import { unknownName } from '../../events/index.ts';
import { linksTo } from './link.ts';
import { extraTools } from './extra-tools.ts';
import { isExtra, PROMPTS, RESOURCES } from './grants.ts';
import { createRedactor, messageOf } from './messages.ts';
import type { McpServer, McpServers } from './settings.ts';
import { toolProblem } from './tool-problem.ts';
import { type McpTool, wrapTool } from './wrap-tool.ts';

/** Minimum time between two warnings of one kind. */
const QUIET_MS = 60_000;
const PROBLEMS_SHOWN = 10;
const NAME_SHOWN = 80;

export interface McpTools {
  tools: McpTool[];
  /** Tools of the server that no agent is offered. */
  leftOut: McpTool['origin'][];
  /** Ends all sessions and processes. */
  close(): Promise<void>;
}

export interface McpOptions {
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
}

/** Grants of resources and prompts, as `NAME/@resources`. They are offered only where they are granted. */
interface Wanted {
  extras?: ReadonlySet<string>;
}

/**
 * Starts or reaches every server and wraps its tools. If one server fails, none is kept: tools open every prompt, so
 * agents that begin without some of them would lack them for the rest of their conversation. Throws `config_invalid`,
 * with every server that failed.
 */
export async function openMcpTools(servers: McpServers, options: McpOptions & Wanted): Promise<McpTools> {
  const connections: Connection[] = [];
  const close = async () => void (await Promise.all(connections.map((connection) => connection.close())));
  const leftOut: McpTool['origin'][] = [];
  const opened = await Promise.allSettled(
    Object.entries(servers).map(([server, settings]) =>
      openServer(server, settings, options, {
        onConnection: (connection) => connections.push(connection),
        onLeftOut: (tool) => leftOut.push({ server, tool }),
      }),
    ),
  );
  const tools = opened.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  const problems = [
    ...opened.flatMap((each) => (each.status === 'rejected' ? [messageOf(each.reason)] : [])),
    ...collisions(tools),
  ];
  if (problems.length === 0) return { tools, leftOut, close };
  await close();
  const message = `${problems.length} problem(s) with MCP servers:\n  ${problems.join('\n  ')}`;
  throw new TroupeError('config_invalid', message, { problems });
}

interface Opened {
  onConnection: (connection: Connection) => void;
  onLeftOut: (tool: string) => void;
}

async function openServer(
  name: string,
  settings: McpServer,
  { env, clock, onWarning, extras }: McpOptions & Wanted,
  { onConnection, onLeftOut }: Opened,
): Promise<McpTool[]> {
  const where = `mcpServers.${name}`;
  const variables = variablesOf(where, settings, env);
  const redact = createRedactor(variables);
  const connection = createConnection({
    timeoutMs: settings.timeoutMs,
    createLink: linksTo(settings, { variables, clock }),
    redact,
    clock,
    onLost: (why) => onWarning(`the connection was lost and is reopened on demand: ${why}`, where),
    onToolsChanged: reportSparsely(clock, (times) => {
      const often = times === 1 ? '' : ` (reported ${times} times)`;
      onWarning(`its tools have changed${often}; agents get them after the next start`, where);
    }),
  });
  onConnection(connection);
  const listed = await connection.list().catch((error: unknown) => {
    const isRemote = 'url' in settings;
    throw new Error(`${where} cannot be ${isRemote ? 'reached' : 'started'}: ${messageOf(error)}`);
  });
  const names = listed.map((tool) => tool.name);
  const missing = settings.tools?.filter((tool) => !names.includes(tool) && !isExtra(tool)) ?? [];
  if (missing.length > 0) {
    throw new Error(
      missing
        .map((tool) => unknownName(`${where}.tools: it has no tool "${tool}"`, tool, names))
        .join('\n  '),
    );
  }
  const allowed = listed.filter((tool) => settings.tools?.includes(tool.name) ?? true);
  const offered = allowed.filter((tool) => !needsTask(tool));
  const left = allowed.filter(needsTask).map((tool) => tool.name);
  left.forEach(onLeftOut);
  if (left.length > 0) onWarning(leftOutText(left), where);
  const problems = offered.flatMap((tool) => toolProblem(tool) ?? []);
  if (problems.length > 0) {
    const shown = problems.slice(0, PROBLEMS_SHOWN).map((problem) => `${where}: ${problem}`);
    const more = problems.length - shown.length;
    if (more > 0) shown.push(`${where}: ${more} more of its tools have problems`);
    throw new Error(shown.join('\n  '));
  }
  const origin = { server: name, settings, connection, redact };
  const wanted = [RESOURCES, PROMPTS].filter((extra) => extras?.has(`${name}/${extra}`));
  const more = wanted.length === 0 ? [] : extraTools(wanted, await connection.capabilities(), origin);
  return [...offered.map((tool) => wrapTool(tool, origin)), ...more];
}

/** A tool that answers MCP tasks only, which Troupe does not create: every call would fail. */
function needsTask({ execution }: ListedTool): boolean {
  return execution?.taskSupport === 'required';
}

function leftOutText(names: readonly string[]): string {
  const shown = names.slice(0, PROBLEMS_SHOWN).map((name) => JSON.stringify(name.slice(0, NAME_SHOWN)));
  const more = names.length > PROBLEMS_SHOWN ? `, and ${names.length - PROBLEMS_SHOWN} more` : '';
  return `not offered to agents, because they run as MCP tasks only: ${shown.join(', ')}${more}`;
}

/**
 * Reports the first event at once, then at most one per period with the number of events: a server may cause them
 * without end.
 */
function reportSparsely(clock: Clock, report: (times: number) => void): () => void {
  let reportedAt = -Infinity;
  let times = 0;
  return () => {
    times += 1;
    if (clock.monotonic() - reportedAt < QUIET_MS) return;
    reportedAt = clock.monotonic();
    report(times);
    times = 0;
  };
}

function variablesOf(where: string, settings: McpServer, env: McpOptions['env']): Record<string, string> {
  return Object.fromEntries(
    variableNames(settings).map(([field, name]) => {
      const value = env[name];
      if (value === undefined) throw new Error(`${where}.${field}: the variable ${name} is not set`);
      return [name, value];
    }),
  );
}

function variableNames(settings: McpServer): (readonly [field: string, name: string])[] {
  if (!('url' in settings)) return settings.env.map((name) => ['env', name] as const);
  const { clientSecretEnv, privateKeyEnv } = settings.oauth ?? {};
  return [
    ...Object.values(settings.headersEnv).map((name) => ['headersEnv', name] as const),
    ...(clientSecretEnv === undefined ? [] : [['oauth.clientSecretEnv', clientSecretEnv] as const]),
    ...(privateKeyEnv === undefined ? [] : [['oauth.privateKeyEnv', privateKeyEnv] as const]),
  ];
}

function collisions(tools: readonly McpTool[]): string[] {
  const first = new Map<string, McpTool>();
  const found = tools.flatMap((tool) => {
    const other = first.get(tool.name);
    if (!other) first.set(tool.name, tool);
    if (!other) return [];
    const [a, b] = [other, tool].map(({ origin }) => `${origin.server}/${origin.tool}`);
    return [`${a} and ${b} would both be called "${tool.name}": leave one out with \`tools\` of its server`];
  });
  const more = found.length - PROBLEMS_SHOWN;
  return more > 0 ? [...found.slice(0, PROBLEMS_SHOWN), `${more} more of this kind`] : found;
}
