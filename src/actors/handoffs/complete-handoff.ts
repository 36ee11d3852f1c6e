import { handoffSteps } from '../../context/extract/handoff.ts';
import {
  type AgentId,
  type Event,
  type EventDraft,
  type HandoffDraft,
  HandoffSummary,
} from '../../events/index.ts';
import type { RequestOf } from '../../tools/tool.ts';
import { inSlices } from '../engine/in-slices.ts';
import { readNewest } from '../log/read-pages.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { handoffRequestSteps, latestCompaction, parseHandoff } from '../../context/index.ts';
import { askSummary } from '../compaction/ask-summary.ts';
import { requestTokens, windowFor } from '../compaction/compaction-policy.ts';

/** Events of the log that a summary is made from, beside what the turn itself has done. */
const RECENT_EVENTS = 200;

/** A hand-over as it is settled: complete, so that a replay needs neither the log nor a model. */
export interface HandOver {
  to: AgentId;
  summary: HandoffSummary;
}

export async function completeHandoff(
  run: TurnRun,
  request: RequestOf<'handoff'>,
  summarise?: HandoffSources['summarise'],
): Promise<HandOver> {
  const summary = await fillHandoff(request, {
    from: run.live.address.agent,
    events: () => recentEvents(run),
    extract: (events, from) => inSlices(run.deps.clock, handoffSteps(events, from, run.deps.trust ?? null)),
    summarise,
    onWarning: run.deps.onWarning,
  });
  return { to: request.to, summary };
}

/** The log as the turn was pinned on it, then what the turn has said and done since. */
async function recentEvents(run: TurnRun): Promise<Event[]> {
  const { deps, turn, outputs } = run;
  const { address } = run.live;
  const after = Math.max(0, turn.upTo - RECENT_EVENTS);
  const events = await readNewest(deps.store, address, { after, upTo: turn.upTo, limit: RECENT_EVENTS });
  const { tenant, conversation } = address;
  const at = events.at(-1)?.at ?? 0;
  const own = [...outputs, ...wordsOf(run)];
  return [
    ...events,
    ...own.map((draft, index) => ({
      ...draft,
      tenant,
      conversation,
      seq: turn.upTo + 1 + index,
      at,
      tokens: 0,
    })),
  ];
}

/** What the agent says beside the very call that hands over. */
function wordsOf(run: TurnRun): EventDraft[] {
  const content = run.answer?.text ?? '';
  if (content.trim() === '') return [];
  return [{ ...ownDraft(run, `step:${run.step}`), kind: 'message', body: { content } }];
}

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

/** A handful of short fields: more is no summary. */
const SUMMARY_TOKENS = 1_500;

/** Asks a model for the summary of a hand-over; null where the turn was broken off. Throws if the model gives none. */
export async function summariseHandoff(
  run: TurnRun,
  to: AgentId,
  events: readonly Event[],
): Promise<HandoffSummary | null> {
  const { deps, live, runtime } = run;
  const summariser = runtime.summariser ?? runtime;
  const model = await deps.models.get(live.address.tenant, summariser.profile);
  const fitting = handoffRequestSteps({
    from: live.address.agent,
    to,
    events,
    before: latestCompaction(live.view)?.body.summary ?? '',
    secret: live.view.secret,
    people: live.view.people,
    maxTokens: requestTokens(windowFor(summariser, model), SUMMARY_TOKENS),
    count: deps.countTokens,
    trusted: deps.trust ?? null,
  });
  const request = await inSlices(deps.clock, fitting);
  if (!request) throw nothing('the request fits no window');
  const answer = await askSummary(run, request, SUMMARY_TOKENS);
  if (answer.kind === 'aborted') return null;
  if (answer.kind === 'failed') throw nothing(answer.message);
  const summary = parseHandoff(answer.text);
  if (!summary) throw nothing('the model wrote something else');
  // An id that is nowhere in the conversation would send the next agent looking for nothing.
  return { ...summary, artifacts: summary.artifacts.filter((id) => request.user.includes(id)) };
}

function nothing(why: string): Error {
  return new Error(`the summary is taken from the log instead: ${why}`);
}
