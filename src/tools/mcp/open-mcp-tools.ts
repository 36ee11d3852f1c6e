import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { type Connection, createConnection, LONGEST_PAUSE_MS, pauseMs } from './connection.ts';
import { unknownName } from '../../events/index.ts';
import { linksTo } from './session.ts';
import { extraTools, type McpTool, type Origin, wrapTool } from './tools.ts';
import { isExtra, PROMPTS, RESOURCES, type McpServer, type McpServers, parseGrant } from './settings.ts';
import { createRedactor, messageOf } from './wire.ts';
import { type OfferedTool, readTool } from './results.ts';
import type { Tool } from '../tool.ts';

/** Least time between two warnings of one kind, ms. */
const QUIET_MS = 60_000;
const PROBLEMS_SHOWN = 10;
const NAME_SHOWN = 80;

/** `tools` and `away` change when a server that was away can be used. */
export interface McpTools {
  /** The tools that agents can be granted. */
  tools: McpTool[];
  /** Tools that no agent is offered. */
  leftOut: { server: string; tool: string }[];
  /** Servers that could not be used so far, each with the reason. Their tools are unknown. */
  away: Map<string, string>;
  /** Ends all sessions and processes. */
  close(): Promise<void>;
}

export interface McpOptions {
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
}

interface Wanted {
  /** Granted resources and prompts, as `NAME/@resources`. Only granted ones are offered. */
  extras?: ReadonlySet<string>;
  /** A server that was away at the start can be used, and its tools are now offered. */
  onArrival?: () => void;
}

/**
 * Starts or reaches every server and wraps its tools. A server that cannot be used within its `timeoutMs` is left out with a
 * warning, and tried again until it can be used. Throws `config_invalid` for invalid settings.
 */
export async function openMcpTools(servers: McpServers, options: McpOptions & Wanted): Promise<McpTools> {
  const { clock, onWarning } = options;
  const all = Object.entries(servers);
  refuseProblems(all.flatMap(([name, settings]) => unsetVariables(name, settings, options.env)));
  const closing = new AbortController();
  const connections = new Set<Connection>();
  const mcp: McpTools = {
    tools: [],
    leftOut: [],
    away: new Map(),
    async close() {
      closing.abort();
      await Promise.all([...connections].map((connection) => connection.close()));
    },
  };
  const place = { options, connections, closing: closing.signal };

  function add(found: readonly Arrival[]): void {
    mcp.leftOut.push(...found.flatMap(({ leftOut }) => leftOut));
    const more = found.flatMap(({ tools }) => tools);
    mcp.tools.push(...withoutTwins(more, { mcp, onWarning }));
  }

  async function startOrLeaveOut([name, settings]: [string, McpServer]): Promise<Arrival | null> {
    let failed: (why: string) => void = () => undefined;
    const failure = new Promise<string>((resolve) => (failed = resolve));
    const arrival = keepOpening(name, settings, { ...place, onFailure: (why) => failed(why) });
    const over = new AbortController();
    const late = clock
      .sleep(settings.timeoutMs, over.signal)
      .then(() => `it did not answer within ${settings.timeoutMs} ms`);
    const first = await Promise.race([arrival, failure, late]);
    over.abort();
    if (typeof first !== 'string') return first;
    mcp.away.set(name, first);
    onWarning(awayText(first), whereOf(name));
    void arrival.then((found) => found && join(name, found));
    return null;
  }

  function join(name: string, found: Arrival): void {
    mcp.away.delete(name);
    add([found]);
    for (const problem of found.problems) onWarning(problem, whereOf(name));
    onWarning('it can be used now: agents have its tools from their next turn on', whereOf(name));
    options.onArrival?.();
  }

  const found = (await Promise.all(all.map(startOrLeaveOut))).filter((arrival) => arrival !== null);
  const problems = found.flatMap((arrival) => arrival.problems);
  if (problems.length > 0) await mcp.close();
  refuseProblems(problems);
  add(found);
  return mcp;
}

function whereOf(name: string): string {
  return `mcpServers.${name}`;
}

function refuseProblems(problems: readonly string[]): void {
  if (problems.length === 0) return;
  const message = `${problems.length} problem(s) with MCP servers:\n  ${problems.join('\n  ')}`;
  throw new TroupeError('config_invalid', message, { problems });
}

function awayText(why: string): string {
  return `it cannot be used: ${why}. The troupe runs without its tools; it is tried again, at most ${LONGEST_PAUSE_MS / 1_000} s apart, and agents get them when it is there. Mend the server; settings that are changed count from the next start`;
}

interface Arrival extends Pick<McpTools, 'tools' | 'leftOut'> {
  /** Tools that the settings name but the server does not have. */
  problems: string[];
}

interface Place {
  options: McpOptions & Wanted;
  connections: Set<Connection>;
  closing: AbortSignal;
}

/** Opens a server, and tries again after each failure with growing pauses. Null if it was closed first. */
async function keepOpening(
  name: string,
  settings: McpServer,
  { options, connections, closing, onFailure }: Place & { onFailure: (why: string) => void },
): Promise<Arrival | null> {
  for (let failures = 0; !closing.aborted; failures += 1) {
    if (failures > 0) await options.clock.sleep(pauseMs(failures), closing);
    if (closing.aborted) return null;
    const origin = originOf(name, settings, options);
    connections.add(origin.connection);
    try {
      return await readServer(origin, options);
    } catch (error) {
      onFailure(messageOf(error));
      await origin.connection.close();
      connections.delete(origin.connection);
    }
  }
  return null;
}

function originOf(name: string, settings: McpServer, { env, clock, onWarning }: McpOptions): Origin {
  const where = whereOf(name);
  const variables = Object.fromEntries(
    variableNames(settings).map(([, variable]) => [variable, env[variable] ?? '']),
  );
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
  return { server: name, settings, connection, redact };
}

/** Reads what a server offers. Throws the reason if the server cannot be used. */
async function readServer(origin: Origin, { onWarning, extras }: McpOptions & Wanted): Promise<Arrival> {
  const { server, settings, connection } = origin;
  const where = whereOf(server);
  const wanted = [RESOURCES, PROMPTS].filter((extra) => extras?.has(`${server}/${extra}`));
  const listed = await connection.list();
  if (listed.tools.length === 0 && wanted.length === 0)
    throw new Error(listed.problems[0] ?? 'it lists no tools');
  const leftOut: Arrival['leftOut'] = [];
  const { offered, names } = offeredTools(listed.tools, settings, {
    onProblem: (problem) => onWarning(problem, where),
    onLeftOut: (tool) => leftOut.push({ server, tool }),
  });
  for (const problem of listed.problems) onWarning(problem, where);
  const isWhole = listed.problems.length === 0;
  const missing = settings.tools?.filter((tool) => !names.includes(tool) && !isExtra(tool)) ?? [];
  const problems = missing.map((tool) =>
    unknownName(`${where}.tools: it has no tool "${tool}"`, tool, names),
  );
  const more = wanted.length === 0 ? [] : extraTools(wanted, await connection.capabilities(), origin);
  const tools = [...offered.map((tool) => wrapTool(tool, origin)), ...more];
  return { tools, leftOut, problems: isWhole ? problems : [] };
}

/**
 * The tools of a list that agents can be offered. One invalid tool does not affect the others. `names`: the names of all tools
 * in the list.
 */
function offeredTools(
  listed: readonly unknown[],
  settings: McpServer,
  { onProblem, onLeftOut }: { onProblem: (problem: string) => void; onLeftOut: (tool: string) => void },
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

/** Reports the first event at once, then at most one per period with the number of events: a server may cause them without end. */
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

function unsetVariables(name: string, settings: McpServer, env: McpOptions['env']): string[] {
  return variableNames(settings)
    .filter(([, variable]) => env[variable] === undefined)
    .map(([field, variable]) => `${whereOf(name)}.${field}: the variable ${variable} is not set`);
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

/** Of several tools with the same name for models, only the first is offered. The others are reported, by server. */
function withoutTwins(
  more: readonly McpTool[],
  { mcp, onWarning }: { mcp: McpTools } & Pick<McpOptions, 'onWarning'>,
): McpTool[] {
  const first = new Map(mcp.tools.map((tool) => [tool.name, tool]));
  const twins = new Map<string, string[]>();
  const kept = more.filter((tool) => {
    const other = first.get(tool.name);
    if (!other) return first.set(tool.name, tool);
    const { server, tool: name } = tool.origin;
    const isSame = other.origin.server === server && other.origin.tool === name;
    if (!isSame) mcp.leftOut.push(tool.origin);
    const what = isSame
      ? `"${name}" is listed twice`
      : `"${name}" would be called "${tool.name}", as ${other.origin.server}/${other.origin.tool} is`;
    twins.set(server, [...(twins.get(server) ?? []), what]);
    return false;
  });
  for (const [server, found] of twins) {
    const hidden = found.length > PROBLEMS_SHOWN ? `; and ${found.length - PROBLEMS_SHOWN} more` : '';
    const shown = found.slice(0, PROBLEMS_SHOWN).join('; ');
    onWarning(
      `of tools with one name the first is offered: ${shown}${hidden}; choose with \`tools\` of the server`,
      whereOf(server),
    );
  }
  return kept;
}

interface WithGrants {
  agents: readonly {
    tools?: readonly string[] | undefined;
    needsApproval?: readonly string[] | undefined;
  }[];
  tools?: readonly Tool[] | undefined;
}

/** Replaces grants by the names of the tools that servers offer, and adds these tools. `refuse` gets the problems. */
export function replaceGrants<D extends WithGrants>(
  definition: D,
  {
    tools: offered,
    leftOut,
    away,
  }: Pick<McpTools, 'tools' | 'leftOut'> & { away: { has(server: string): boolean } },
  refuse: (problems: readonly string[]) => void = refuseGrants,
): D {
  const problems: string[] = [];
  const toolsOf = (names: readonly string[], field: string, index: number): string[] =>
    names.flatMap((name, at) => {
      const grant = parseGrant(name);
      if (!grant) return [name];
      const ofServer = offered.filter(({ origin }) => origin.server === grant.server);
      // `*` grants no resources or prompts, but `needsApproval` with `*` covers them.
      const given = ofServer.filter(({ origin }) =>
        grant.tool === null ? field === 'needsApproval' || !isExtra(origin.tool) : origin.tool === grant.tool,
      );
      // Granting a tool that was left out is no mistake: a warning has already reported it.
      const isLeftOut =
        away.has(grant.server) ||
        leftOut.some(({ server, tool }) => server === grant.server && tool === grant.tool);
      if (given.length === 0 && grant.tool !== null && !isLeftOut) {
        const what = `agents[${index}].${field}[${at}]: the MCP server "${grant.server}" has no tool "${grant.tool}"`;
        const known = ofServer.map(({ origin }) => origin.tool);
        problems.push(
          isExtra(grant.tool) ? offersNone(what, grant.tool) : unknownName(what, grant.tool, known),
        );
      }
      return given.map((tool) => tool.name);
    });
  const agents = definition.agents.map((agent, index) => ({
    ...agent,
    ...(agent.tools && { tools: toolsOf(agent.tools, 'tools', index) }),
    ...(agent.needsApproval && { needsApproval: toolsOf(agent.needsApproval, 'needsApproval', index) }),
  }));
  const own = definition.tools ?? [];
  const added = offered.filter(({ name, origin }) => {
    const isTaken = own.some((tool) => tool.name === name);
    if (isTaken) problems.push(`tools: "${name}" is also the name of ${origin.server}/${origin.tool}`);
    return !isTaken;
  });
  if (problems.length > 0) refuse(problems);
  return { ...definition, agents, tools: [...own, ...added] };
}

/** Throws `config_invalid`. */
function refuseGrants(problems: readonly string[]): never {
  const message = `${problems.length} problem(s) with tools of MCP servers:\n  ${problems.join('\n  ')}`;
  throw new TroupeError('config_invalid', message, { problems });
}

function offersNone(what: string, extra: string): string {
  return `${what}: it offers no ${extra.slice(1)}`;
}
