import type { AgentInput } from '../../library/config/agent-input.ts';
import { type Event, eventOf } from '../../events/index.ts';

/** Answers nothing: a kept run takes no turns. */
const SILENT = { rules: [{ reply: 'This run is over.' }] };

/**
 * The agents of a run, from its log: a company in a test need not be in any file. What they were told is in the store, so that
 * their prompts are rendered again; their names and models are all that the console needs besides.
 */
export function agentsOfRun(events: readonly Event[]): AgentInput[] {
  const agents = new Map<string, AgentInput>();
  for (const event of events) {
    const { kind, id, name } = event.author;
    if (kind !== 'agent') continue;
    const model = eventOf(event, 'baseline')?.body.model;
    if (model === undefined && agents.has(id)) continue;
    agents.set(id, { id, name, provider: 'scripted', script: SILENT, ...(model && { model }) });
  }
  return [...agents.values()];
}
