import type { TaskBook } from '../../machines/task-book.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';

/** Tools that reach other agents: without one, their state is of no use to an agent. */
const REACHING = ['handoff', 'delegate', 'ask', 'follow_up'];

/** Colleagues that cannot work here now, and tools whose calls may fail. Null: none. */
export function unavailableText(
  { profile, tools }: AgentRuntime,
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
  const lines = [...agents.sort(), ...[...new Set(troubles)].sort()];
  return lines.length > 0 ? lines.join('; ') : null;
}
