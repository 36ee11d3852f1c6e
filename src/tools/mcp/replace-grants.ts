import { TroupeError } from '../../base/errors.ts';
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

/** Replaces grants by the names of the tools that servers offer, and adds these tools. `refuse` is told what is wrong. */
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
      // `*` grants no resources and prompts, but an approval for all covers them.
      const given = ofServer.filter(({ origin }) =>
        grant.tool === null ? field === 'needsApproval' || !isExtra(origin.tool) : origin.tool === grant.tool,
      );
      // Granting a tool that was left out is no mistake: a warning has reported it.
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
