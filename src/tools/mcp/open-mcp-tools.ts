import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { type Connection, createConnection } from './connection.ts';
import { unknownName } from '../../events/index.ts';
import { linksTo } from './link.ts';
import { extraTools } from './extra-tools.ts';
import { isExtra, PROMPTS, RESOURCES } from './grants.ts';
import { createRedactor, messageOf, OddServer } from './messages.ts';
import type { McpServer, McpServers } from './settings.ts';
import { type OfferedTool, readTool } from './tool-problem.ts';
import { type McpTool, wrapTool } from './wrap-tool.ts';

/** Minimum time between two warnings of one kind. */
const QUIET_MS = 60_000;
const PROBLEMS_SHOWN = 10;
const NAME_SHOWN = 80;

export interface McpTools {
  tools: McpTool[];
  /** Tools that no agent is offered, and servers that could not be used, whose tools are not known. */
  leftOut: { server: string; tool: string | null }[];
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
 * Starts or reaches every server and wraps its tools. If one cannot be started or reached, none is kept: tools open every
 * prompt, so agents that begin without some of them would lack them for the rest of their conversation. Throws
 * `config_invalid`, with every server that failed. A server that is there and odd is left out with a warning, and so is an
 * odd tool: nobody here can mend them.
 */
export async function openMcpTools(servers: McpServers, options: McpOptions & Wanted): Promise<McpTools> {
  const connections: Connection[] = [];
  const close = async () => void (await Promise.all(connections.map((connection) => connection.close())));
  const leftOut: McpTools['leftOut'] = [];
  const opened = await Promise.allSettled(
    Object.entries(servers).map(([server, settings]) =>
      openServer(server, settings, options, {
        onConnection: (connection) => connections.push(connection),
        onLeftOut: (tool) => leftOut.push({ server, tool }),
      }),
    ),
  );
  const problems = opened.flatMap((each) => (each.status === 'rejected' ? [messageOf(each.reason)] : []));
  if (problems.length === 0) {
    const all = opened.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    return { tools: withoutTwins(all, { leftOut, onWarning: options.onWarning }), leftOut, close };
  }
  await close();
  const message = `${problems.length} problem(s) with MCP servers:\n  ${problems.join('\n  ')}`;
  throw new TroupeError('config_invalid', message, { problems });
}

interface Opened {
  onConnection: (connection: Connection) => void;
  /** Null: all of them. */
  onLeftOut: (tool: string | null) => void;
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
  const listed = await connection.list().catch(async (error: unknown) => {
    const verb = 'url' in settings ? 'reached' : 'started';
    const why = messageOf(error);
    if (!(error instanceof OddServer)) throw new Error(`${where} cannot be ${verb}: ${why}`);
    onWarning(`it cannot be used, so agents have none of its tools until the next start: ${why}`, where);
    onLeftOut(null);
    await connection.close();
    return null;
  });
  if (listed === null) return [];
  const { offered, names } = offeredTools(listed.tools, settings, {
    onProblem: (problem) => onWarning(problem, where),
    onLeftOut,
  });
  for (const problem of listed.problems) onWarning(problem, where);
  const missing = settings.tools?.filter((tool) => !names.includes(tool) && !isExtra(tool)) ?? [];
  if (missing.length > 0 && listed.problems.length === 0) {
    throw new Error(
      missing
        .map((tool) => unknownName(`${where}.tools: it has no tool "${tool}"`, tool, names))
        .join('\n  '),
    );
  }
  const origin = { server: name, settings, connection, redact };
  const wanted = [RESOURCES, PROMPTS].filter((extra) => extras?.has(`${name}/${extra}`));
  const more = wanted.length === 0 ? [] : extraTools(wanted, await connection.capabilities(), origin);
  return [...offered.map((tool) => wrapTool(tool, origin)), ...more];
}

/** The tools of a list that agents can be offered, each read by itself. `names`: of all that are in the list. */
function offeredTools(
  listed: readonly unknown[],
  settings: McpServer,
  { onProblem, onLeftOut }: Pick<Opened, 'onLeftOut'> & { onProblem: (problem: string) => void },
): { offered: OfferedTool[]; names: string[] } {
  const read = listed.map(readTool);
  const allowed = read.filter(({ name }) => settings.tools?.includes(name) ?? true);
  const offered: OfferedTool[] = [];
  const odd: string[] = [];
  const tasks: string[] = [];
  for (const tool of allowed) {
    if (!('why' in tool) && !tool.needsTask) {
      offered.push(tool);
      continue;
    }
    onLeftOut(tool.name);
    if ('why' in tool) odd.push(`${JSON.stringify(tool.name.slice(0, NAME_SHOWN))}: ${tool.why}`);
    else tasks.push(tool.name);
  }
  if (tasks.length > 0) onProblem(leftOutText(tasks));
  const more = odd.length > PROBLEMS_SHOWN ? `; and ${odd.length - PROBLEMS_SHOWN} more` : '';
  if (odd.length > 0)
    onProblem(
      `not offered to agents, because they cannot be used: ${odd.slice(0, PROBLEMS_SHOWN).join('; ')}${more}`,
    );
  return { offered, names: read.map(({ name }) => name) };
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

/** The first of the tools that models would call by one name. The others are reported by server. */
function withoutTwins(
  tools: readonly McpTool[],
  { leftOut, onWarning }: Pick<McpTools, 'leftOut'> & Pick<McpOptions, 'onWarning'>,
): McpTool[] {
  const first = new Map<string, McpTool>();
  const twins = new Map<string, string[]>();
  for (const tool of tools) {
    const other = first.get(tool.name);
    if (!other) {
      first.set(tool.name, tool);
      continue;
    }
    const { server, tool: name } = tool.origin;
    const isSame = other.origin.server === server && other.origin.tool === name;
    if (!isSame) leftOut.push(tool.origin);
    const what = isSame
      ? `"${name}" is listed twice`
      : `"${name}" would be called "${tool.name}", as ${other.origin.server}/${other.origin.tool} is`;
    twins.set(server, [...(twins.get(server) ?? []), what]);
  }
  for (const [server, found] of twins) {
    const more = found.length > PROBLEMS_SHOWN ? `; and ${found.length - PROBLEMS_SHOWN} more` : '';
    const shown = found.slice(0, PROBLEMS_SHOWN).join('; ');
    onWarning(
      `of tools with one name the first is offered: ${shown}${more}; choose with \`tools\` of the server`,
      `mcpServers.${server}`,
    );
  }
  return [...first.values()];
}
