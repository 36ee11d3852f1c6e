import { handoffSteps } from '../../context/extract/handoff.ts';
import type { AgentId, Event, EventDraft, HandoffSummary } from '../../events/index.ts';
import type { RequestOf } from '../../tools/tool.ts';
import { fillHandoff, type HandoffSources } from './fill-handoff.ts';
import { inSlices } from '../engine/in-slices.ts';
import { readNewest } from '../log/read-newest.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';

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
