import type { AgentProfile } from './agent-profile.ts';

/**
 * What an agent is told of itself and of its company, by its role. A manager sees the platform and everybody. A worker
 * has the manager's instructions where it has none of its own, sees the managers only, and leaves people to them. Peers
 * see everybody.
 */
type AgentRegistry = readonly AgentProfile[];

/** Rosters longer than this are cut: a company of a thousand must not fill every prompt with names. */
const MAX_ROSTER = 50;

const MANAGER = 'You coordinate: you decide who does what and answer the people.';
const PEER = 'You are a peer among equals.';
const WORKER_ALONE = 'You are a worker: stay on the task you were given and report its result.';

const PLATFORM = `# The platform
Troupe runs this company of agents. It keeps the log of the conversation, wakes the agents that are addressed, and shows each of them what it has missed. Naming an agent in a text wakes nobody.`;

/** What the tools that reach other agents do, by name. */
const ACTIONS: Readonly<Record<string, string>> = {
  handoff: 'another agent takes the conversation over and answers in your place; your turn ends',
  delegate: 'another agent does a task and you are woken with its result; it sees the task alone',
  ask: 'an agent or a person answers a question, and you are woken with the answer',
  follow_up: 'an agent goes on with a task that you gave it',
  cancel_task: 'a task that you gave is called off',
};

/** Chat leaves out the instructions; who it is and whom it answers to an agent must know in every mode. */
export function personaText(agent: AgentProfile, company: AgentRegistry, mode: 'chat' | 'agent'): string {
  const identity = `# You are ${agent.name} (@${agent.id})`;
  const instructions = mode === 'chat' ? '' : instructionsOf(agent, company);
  return [identity, roleText(agent, company), instructions].filter(Boolean).join('\n');
}

function roleText({ role }: AgentProfile, company: AgentRegistry): string {
  if (role === 'manager') return MANAGER;
  if (role === 'peer') return PEER;
  const managers = managersOf(company).map(({ id }) => `@${id}`);
  if (managers.length === 0) return WORKER_ALONE;
  return `You are a worker: stay on the task you were given and report its result to the manager (${managers.join(' or ')}). Do not address people; that is the manager's part.`;
}

function instructionsOf({ role, instructions }: AgentProfile, company: AgentRegistry): string {
  if (instructions !== '' || role !== 'worker') return instructions;
  const inherited = managersOf(company).find((manager) => manager.instructions !== '');
  return inherited
    ? `What @${inherited.id} was told holds for you too, within your task:\n${inherited.instructions}`
    : '';
}

export function environmentText(
  agent: AgentProfile,
  company: AgentRegistry,
  fragments: readonly string[],
): string {
  const platform = agent.role === 'manager' ? [platformText(agent)] : [];
  return [...platform, rosterText(rosterFor(agent, company)), ...fragments].join('\n\n');
}

function platformText({ tools }: AgentProfile): string {
  const actions = tools.flatMap(({ name }) => {
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
    return action === undefined ? [] : [`- ${name}: ${action}`];
  });
  if (actions.length === 0) return `${PLATFORM}\nNone of your tools reaches another agent.`;
  return [PLATFORM, 'What you can do with the others:', ...actions].join('\n');
}

function rosterFor(agent: AgentProfile, company: AgentRegistry): AgentRegistry {
  if (agent.role !== 'worker' || managersOf(company).length === 0) return company;
  return company.filter(({ id, role }) => role === 'manager' || id === agent.id);
}

function managersOf(company: AgentRegistry): AgentRegistry {
  return company.filter(({ role }) => role === 'manager');
}

function rosterText(roster: AgentRegistry): string {
  const lines = roster
    .slice(0, MAX_ROSTER)
    .map(
      ({ id, name, role, description }) =>
        `- @${id}: ${name}, ${role}${description ? `. ${description}` : ''}`,
    );
  const more = roster.length > MAX_ROSTER ? [`- and ${roster.length - MAX_ROSTER} more`] : [];
  return ['# Agents here', ...lines, ...more].join('\n');
}
