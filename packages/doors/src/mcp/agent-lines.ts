import type { AgentInfo } from '../troupe.ts';

type Described = Pick<AgentInfo, 'id' | 'name' | 'description' | 'capabilities'>;

/** Longest line of an agent, and longest list, in characters: clients put both into their prompts. */
const LINE_CHARS = 1_000;
const LIST_CHARS = 8_000;

/** What others are told of an agent, so that they choose well. */
export function agentLine({ id, name, description, capabilities }: Described): string {
  const skills = capabilities.length > 0 ? ` (${capabilities.join(', ')})` : '';
  const line = `${id}${name === id ? '' : `, ${name}`}${description === '' ? '' : `: ${description}`}${skills}`;
  return line.length <= LINE_CHARS ? line : `${line.slice(0, LINE_CHARS - 1).toWellFormed()}…`;
}

export function agentLines(agents: readonly Described[]): string {
  const lines: string[] = [];
  let left = LIST_CHARS;
  for (const agent of agents) {
    const line = `\n- ${agentLine(agent)}`;
    left -= line.length;
    if (left < 0) return `${lines.join('')}\n- and ${agents.length - lines.length} more`;
    lines.push(line);
  }
  return lines.join('');
}

/** On one line, with the agents first: some clients show a model only the first line until it looks for tools. */
export function instructionsFor(agents: readonly Described[]): string {
  const list = agentLines(agents).replaceAll('\n- ', ' · ').replaceAll(/\s+/g, ' ');
  return `Agents of a company that answer and work:${list}. "ask" asks whoever is responsible, "ask_AGENT" one agent. An answer names its conversation: name it again to go on there.`;
}
