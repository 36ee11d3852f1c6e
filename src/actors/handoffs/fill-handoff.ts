import { type AgentId, type Event, type HandoffDraft, HandoffSummary } from '../../events/index.ts';
import type { RequestOf } from '../../tools/tool.ts';

/** What a summary is made from, and by whom. */
export interface HandoffSources {
  from: AgentId;
  /** The end of the log and what the turn has done so far, oldest first. */
  events: () => Promise<readonly Event[]>;
  extract: (events: readonly Event[], from: AgentId) => HandoffSummary | Promise<HandoffSummary>;
  /** Asks a model. Whatever it throws or leaves out is made up for by extraction. */
  summarise?: ((events: readonly Event[], from: AgentId) => Promise<HandoffSummary | null>) | undefined;
  onWarning: (error: unknown, where: string) => void;
}

/**
 * The summary of a hand-over. One with a goal is the agent's own and stays as it is; without one, what the agent left
 * out is filled in.
 */
export async function fillHandoff(
  { summary, fill }: RequestOf<'handoff'>,
  sources: HandoffSources,
): Promise<HandoffSummary> {
  if (summary.goal.trim() !== '' || fill === undefined) return { ...summary, by: summary.by ?? 'agent' };
  const { from, extract } = sources;
  const events = await sources.events();
  const written = fill === 'summarise' ? await summarised(sources, events) : null;
  return written
    ? { ...merge(summary, written), by: 'compactor' }
    : { ...merge(summary, await extract(events, from)), by: 'extraction' };
}

async function summarised(
  { from, summarise, onWarning }: HandoffSources,
  events: readonly Event[],
): Promise<HandoffSummary | null> {
  try {
    const parsed = HandoffSummary.safeParse(await summarise?.(events, from));
    return parsed.success ? parsed.data : null;
  } catch (error) {
    onWarning(error, `handoff summary of @${from}`);
    return null;
  }
}

/** What the agent wrote wins, field by field. */
function merge(written: HandoffDraft, found: HandoffSummary): HandoffSummary {
  return {
    goal: found.goal,
    done: written.done || found.done,
    state: written.state || found.state,
    next: written.next || found.next,
    openQuestions: written.openQuestions.length > 0 ? written.openQuestions : found.openQuestions,
    artifacts: written.artifacts.length > 0 ? written.artifacts : found.artifacts,
    why: written.why || found.why,
  };
}
