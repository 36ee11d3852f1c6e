import { handoffRequestSteps, latestCompaction, parseHandoff } from '../../context/index.ts';
import type { AgentId, Event, HandoffSummary } from '../../events/index.ts';
import { inSlices } from '../engine/in-slices.ts';
import { askSummary } from '../compaction/ask-summary.ts';
import { windowFor } from '../compaction/policy-for.ts';
import type { TurnRun } from '../turn/turn-run.ts';

/** A handful of short fields: more is no summary. */
const SUMMARY_TOKENS = 1_500;
/** Of the window beside the answer, since our count is not the provider's. */
const REQUEST_SHARE = 0.8;

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
    maxTokens: Math.floor((windowFor(summariser, model) - SUMMARY_TOKENS) * REQUEST_SHARE),
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
