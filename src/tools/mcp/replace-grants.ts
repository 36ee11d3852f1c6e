import { TroupeError } from '../../errors.ts';
import { unknownName } from '../../events/index.ts';
import type { Tool } from '../tool.ts';
import { isExtra, parseGrant } from './grants.ts';
import type { McpTools } from './open-mcp-tools.ts';

interface WithGrants {
  agents: readonly {
    tools?: readonly string[] | undefined;
    needsApproval?: readonly string[] | undefined;
  }[];
  tools?: readonly Tool[] | undefined;
}

/** Replaces grants by the names of the tools that servers offer, and adds these tools. Throws `config_invalid`. */
export function replaceGrants<D extends WithGrants>(
  definition: D,
  { tools: offered, leftOut }: Pick<McpTools, 'tools' | 'leftOut'>,
): D {
  const problems: string[] = [];
  const toolsOf = (names: readonly string[], field: string, index: number): string[] =>
    names.flatMap((name, at) => {
      const grant = parseGrant(name);
      if (!grant) return [name];
      const ofServer = offered.filter(({ origin }) => origin.server === grant.server);
      // `*` grants no resources and prompts, but an approval for all covers them.
      const given = ofServer.filter(({ origin }) =>
        grant.tool === null ? field === 'needsApproval' || !isExtra(origin.tool) : origin.tool === grant.tool,
      );
      // Granting a tool that was left out is no mistake: a warning has reported it.
      const isLeftOut = leftOut.some(
        ({ server, tool }) => server === grant.server && (tool === null || tool === grant.tool),
      );
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
  for (const { name, origin } of offered) {
    if (!own.some((tool) => tool.name === name)) continue;
    problems.push(`tools: "${name}" is also the name of ${origin.server}/${origin.tool}`);
  }
  if (problems.length === 0) return { ...definition, agents, tools: [...own, ...offered] };
  const message = `${problems.length} problem(s) with tools of MCP servers:\n  ${problems.join('\n  ')}`;
  throw new TroupeError('config_invalid', message, { problems });
}

function offersNone(what: string, extra: string): string {
  return `${what}: it offers no ${extra.slice(1)}`;
}
