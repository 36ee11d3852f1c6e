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
import { requestTokens, windowFor } from '../turn/model-window.ts';

/** Most events of the log that a summary is made from, besides the outputs of the turn. */
const RECENT_EVENTS = 200;

/** A completed handoff, as it is recorded: a replay needs neither the log nor a model. */
export interface CompletedHandoff {
  to: AgentId;
  summary: HandoffSummary;
}

export async function completeHandoff(
  run: TurnRun,
  request: RequestOf<'handoff'>,
  summarise?: HandoffSources['summarise'],
): Promise<CompletedHandoff> {
  const summary = await fillHandoff(request, {
    from: run.live.address.agent,
    events: () => recentEvents(run),
    extract: (events, from) =>
      inSlices(run.deps.clock, handoffSteps(events, from, run.deps.trust ?? null), run.meanwhile.work),
    summarise,
    onWarning: run.deps.onWarning,
  });
  return { to: request.to, summary };
}

/** The newest events of the log up to the pinned seq, then the outputs of the turn. */
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

/** The text of the answer that contains the handoff call. */
function wordsOf(run: TurnRun): EventDraft[] {
  const content = run.answer?.text ?? '';
  if (content.trim() === '') return [];
  return [{ ...ownDraft(run, `step:${run.step}`), kind: 'message', body: { content } }];
}

/** Sources of a handoff summary. */
export interface HandoffSources {
  from: AgentId;
  /** The end of the log and the outputs of the turn, oldest first. */
  events: () => Promise<readonly Event[]>;
  extract: (events: readonly Event[], from: AgentId) => HandoffSummary | Promise<HandoffSummary>;
  /** Asks a model. If it throws or leaves fields out, extraction fills them. */
  summarise?: ((events: readonly Event[], from: AgentId) => Promise<HandoffSummary | null>) | undefined;
  onWarning: (error: unknown, where: string) => void;
}

/**
 * The summary of a handoff. A summary with a goal is the agent's own and stays unchanged; otherwise the empty fields are
 * filled in.
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

/** Takes the agent's text for every field that it wrote. */
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

/** Most tokens of a summary: a few short fields. */
const SUMMARY_TOKENS = 1_500;

/** Asks a model for the summary of a handoff; null if the turn was aborted. Throws if the model gives no summary. */
export async function summariseHandoff(
  run: TurnRun,
  to: AgentId,
  events: readonly Event[],
): Promise<HandoffSummary | null> {
  const { deps, live, runtime } = run;
  const { compaction } = deps.features;
  if (!compaction) throw noSummary('nothing here asks for summaries');
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
  const request = await inSlices(deps.clock, fitting, run.meanwhile.work);
  if (!request) throw noSummary('the request does not fit the window');
  const answer = await compaction.askSummary(run, request, SUMMARY_TOKENS);
  if (answer.kind === 'aborted') return null;
  if (answer.kind === 'failed') throw noSummary(answer.message);
  const summary = parseHandoff(answer.text);
  if (!summary) throw noSummary('the model gave no valid summary');
  // An id that is nowhere in the conversation would send the next agent on a futile search.
  return { ...summary, artifacts: summary.artifacts.filter((id) => request.user.includes(id)) };
}

function noSummary(why: string): Error {
  return new Error(`the summary is extracted from the log instead: ${why}`);
}
