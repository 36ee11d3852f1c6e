import type { TaskBook } from '../../machines/task-book.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';

/** Tools that reach other agents: without one, their state is of no use to an agent. */
const REACHING = ['handoff', 'delegate', 'ask', 'follow_up'];

/** A server may withdraw a thousand tools at once. */
const MAX_SHOWN = 50;

/** Colleagues that cannot work here now, and tools whose calls may fail. Null: none. */
export function unavailableText(
  { profile, tools, awayServers }: AgentRuntime,
  { unavailable, away }: Pick<TaskBook, 'unavailable' | 'away'>,
): string | null {
  const states = new Map<string, string>();
  if (REACHING.some((name) => tools.has(name))) {
    for (const [agent, { blocked }] of away) states.set(agent, blocked ? 'is blocked' : 'has left');
    for (const [agent, state] of unavailable)
      states.set(agent, state === 'failed' ? 'has failed' : `is ${state}`);
    states.delete(profile.id);
  }
  const agents = [...states].map(([agent, state]) => `@${agent} ${state}`);
  const troubles = [...tools.values()].flatMap((tool) => tool.trouble?.() ?? []);
  const servers = awayServers.map((server) => `the tool server ${server} is away, with its tools`);
  const all = [...agents.sort(), ...[...new Set([...troubles, ...servers])].sort()];
  const more = all.length > MAX_SHOWN ? [`and ${all.length - MAX_SHOWN} more`] : [];
  return all.length > 0 ? [...all.slice(0, MAX_SHOWN), ...more].join('; ') : null;
}
