import { unknownName } from '../../events/index.ts';

/**
 * Grants of a server's resources and prompts. `NAME/*` does not include them: whoever granted all tools has not granted all
 * that the server can read.
 */
export const RESOURCES = '@resources';
export const PROMPTS = '@prompts';

/** The tools that such a grant gives, by their names without the server's. */
export const EXTRA_TOOLS: ReadonlyMap<string, readonly string[]> = new Map([
  [RESOURCES, ['list_resources', 'read_resource']],
  [PROMPTS, ['list_prompts', 'get_prompt']],
]);

export function isExtra(tool: string): boolean {
  return tool === RESOURCES || tool === PROMPTS;
}

/** A grant, `NAME/tool` or `NAME/*`, in an agent's `tools`. */
interface Grant {
  server: string;
  /** Null grants all tools. */
  tool: string | null;
}

/** Null for the name of a built-in tool or of the application's own. */
export function parseGrant(name: string): Grant | null {
  const slash = name.indexOf('/');
  if (slash < 0) return null;
  const tool = name.slice(slash + 1);
  return { server: name.slice(0, slash), tool: tool === '*' ? null : tool };
}

/** Leaves room for the tool's name: vendors allow 64 characters for both. */
const SERVER_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;

/** The readable parts of definitions that may be invalid. */
interface Sketch {
  agents: readonly { tools: readonly (string | undefined)[] }[];
  servers: Readonly<Record<string, { tools?: readonly (string | undefined)[] | undefined }>>;
}

/** Problems of servers and grants that show before any server is asked for its tools. */
export function* grantProblems({
  agents,
  servers,
}: Sketch): Generator<{ path: PropertyKey[]; message: string }> {
  for (const name of Object.keys(servers)) {
    if (SERVER_NAME.test(name)) continue;
    yield { path: ['mcpServers', name], message: `a name must match ${SERVER_NAME}` };
  }
  for (const [index, { tools }] of agents.entries()) {
    for (const [at, name] of tools.entries()) {
      const grant = name === undefined ? null : parseGrant(name);
      const message = grant && grantProblem(grant, servers);
      if (message) yield { path: ['agents', index, 'tools', at], message };
    }
  }
}

function grantProblem({ server, tool }: Grant, servers: Sketch['servers']): string | null {
  if (!Object.hasOwn(servers, server)) {
    return unknownName(`there is no MCP server "${server}"`, server, Object.keys(servers));
  }
  const allowed = servers[server]?.tools?.filter((name) => name !== undefined);
  if (tool === null || !allowed || allowed.includes(tool)) return null;
  return unknownName(`mcpServers.${server}.tools does not allow "${tool}"`, tool, allowed);
}
