import type { TroupeDefinition } from '../config/agents-file.ts';
import { TroupeError } from '../errors.ts';
import { parseGrant, unknownName } from '../tools/mcp/grants.ts';
import type { McpOptions, McpTools } from '../tools/mcp/open-mcp-tools.ts';

type Definition = Pick<TroupeDefinition, 'agents' | 'tools' | 'mcpServers'>;

export interface WithMcp<D extends Definition> extends AsyncDisposable {
  /** The definition with tools in place of the grants of them. */
  definition: D;
}

/**
 * Opens the MCP servers that agents are granted tools of, and gives each agent its tools. Throws `config_invalid`, and
 * then leaves nothing open.
 */
export async function openMcp<D extends Definition>(definition: D, options: McpOptions): Promise<WithMcp<D>> {
  const { mcpServers = {} } = definition;
  const granted = new Set(
    definition.agents.flatMap(({ tools }) => tools.map((name) => parseGrant(name)?.server)),
  );
  for (const name of Object.keys(mcpServers)) {
    if (!granted.has(name))
      options.onWarning('no agent is granted its tools, so it is not started', `mcpServers.${name}`);
  }
  const wanted = Object.entries(mcpServers).filter(([name]) => granted.has(name));
  if (wanted.length === 0) return { definition, [Symbol.asyncDispose]: async () => undefined };
  const { openMcpTools } = await import('../tools/mcp/open-mcp-tools.ts');
  const mcp = await openMcpTools(Object.fromEntries(wanted), options);
  try {
    return { definition: withTools(definition, mcp), [Symbol.asyncDispose]: () => mcp.close() };
  } catch (error) {
    await mcp.close();
    throw error;
  }
}

function withTools<D extends Definition>(
  definition: D,
  { tools: offered, leftOut }: Pick<McpTools, 'tools' | 'leftOut'>,
): D {
  const problems: string[] = [];
  const agents = definition.agents.map((agent, index) => ({
    ...agent,
    tools: agent.tools.flatMap((name, at) => {
      const grant = parseGrant(name);
      if (!grant) return [name];
      const ofServer = offered.filter(({ origin }) => origin.server === grant.server);
      const given = ofServer.filter(({ origin }) => grant.tool === null || origin.tool === grant.tool);
      // That it was left out is told, and is nobody's mistake.
      const isLeftOut = leftOut.some(({ server, tool }) => server === grant.server && tool === grant.tool);
      if (given.length === 0 && grant.tool !== null && !isLeftOut) {
        const what = `agents[${index}].tools[${at}]: the MCP server "${grant.server}" has no tool "${grant.tool}"`;
        problems.push(
          unknownName(
            what,
            grant.tool,
            ofServer.map(({ origin }) => origin.tool),
          ),
        );
      }
      return given.map((tool) => tool.name);
    }),
  }));
  for (const { name, origin } of offered) {
    if (!definition.tools.some((own) => own.name === name)) continue;
    problems.push(`tools: "${name}" is also the name of ${origin.server}/${origin.tool}`);
  }
  if (problems.length === 0) return { ...definition, agents, tools: [...definition.tools, ...offered] };
  const message = `${problems.length} problem(s) with tools of MCP servers:\n  ${problems.join('\n  ')}`;
  throw new TroupeError('config_invalid', message, { problems });
}
