import type { Event, EventDraft } from '../../events/index.ts';
import type { TurnRun } from './turn-run.ts';

/**
 * The whole of a tool output by the id that a prompt names: an artifact's, or, for an output that was short enough to
 * be shown whole and was removed later, that of its event. Only the agent's own outputs are read by event.
 */
export async function readOutput(run: TurnRun, id: string): Promise<string | null> {
  const { deps, live, outputs } = run;
  const { address } = live;
  const artifact = await deps.store.readArtifact(address, id);
  if (artifact !== null) return artifact;
  const event = outputs.find((output) => output.id === id) ?? (await deps.store.readById(address, id));
  return event && isOwnResult(event, address.agent) ? event.body.content : null;
}

type Result<E> = Extract<E, { kind: 'tool.result' }>;

function isOwnResult(event: Event | EventDraft, agent: string): event is Result<Event> | Result<EventDraft> {
  const { author, kind } = event;
  return kind === 'tool.result' && author.kind === 'agent' && author.id === agent;
}
