import type { AgentInput, Tool } from '../../../../src/index.ts';
import type { EvalSettings } from '../../src/index.ts';
import type { TroupeInput } from '../../../../src/library/config/agents-file.ts';

/** A company with one part broken, and the claim of its evals that must fail. */
export interface Mutant {
  breaks: 'prompt' | 'tool' | 'routing' | 'limit';
  what: string;
  change: (company: TroupeInput) => TroupeInput;
  /** Models by agent id, where ids change. */
  models?: EvalSettings['models'];
  caughtBy: string;
}

type AgentChange = Partial<Omit<AgentInput, 'provider' | 'model'>>;

/** Changes an agent. */
export function agent(id: string, change: (agent: AgentInput) => AgentChange): Mutant['change'] {
  return (company) => {
    if (!company.agents.some((each) => each.id === id)) throw new Error(`there is no agent ${id}`);
    const agents = company.agents.map((each) =>
      each.id === id ? ({ ...each, ...change(each) } as AgentInput) : each,
    );
    return { ...company, agents };
  };
}

/** Replaces a part of an agent's instructions. */
export function instructions(id: string, part: string | RegExp, by = ''): Mutant['change'] {
  return agent(id, ({ instructions: text }) => {
    const changed = String(text).replace(part, by);
    if (changed === text) throw new Error(`the instructions of ${id} do not have ${part}`);
    return { instructions: changed };
  });
}

/** Takes a tool from an agent. */
export function without(id: string, tool: string): Mutant['change'] {
  return agent(id, ({ tools = [] }) => {
    if (!tools.includes(tool)) throw new Error(`${id} does not have ${tool}`);
    return { tools: tools.filter((name) => name !== tool) };
  });
}

/** Gives a tool to an agent. */
export function withTool(id: string, tool: string): Mutant['change'] {
  return agent(id, ({ tools = [] }) => ({ tools: [...tools, tool] }));
}

/** Changes a tool of the company. */
export function tool(name: string, change: Partial<Tool>): Mutant['change'] {
  return (company) => {
    const { tools = [] } = company;
    if (!tools.some((each) => each.name === name)) throw new Error(`there is no tool ${name}`);
    return { ...company, tools: tools.map((each) => (each.name === name ? { ...each, ...change } : each)) };
  };
}

/** Changes the company itself. */
export function company(change: Partial<TroupeInput>): Mutant['change'] {
  return (whole) => ({ ...whole, ...change });
}
