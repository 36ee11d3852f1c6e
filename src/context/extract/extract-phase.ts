import { type Event, type HandoffSummary, isTaskEnd } from '../../events/index.ts';
import type { Steps } from '../steps.ts';
import type { Trusted } from '../trusted.ts';
import { handoffSteps } from './extract-handoff.ts';
import { said } from './said.ts';

/** What is between two agents, or between an agent and people, is not for all who see the next phase. */
const BETWEEN_TWO: readonly Event['kind'][] = ['delegation.opened', 'question', 'approval.requested'];

/** What came of a phase, for all who go on with the next, found without a model; null where no agent has said anything. */
export function* phaseSteps(events: readonly Event[], trusted: Trusted): Steps<HandoffSummary | null> {
  const open = events.filter((event) => !BETWEEN_TWO.includes(event.kind) && !isTaskEnd(event));
  const isSaid = open.some((event) => event.author.kind === 'agent' && said(event).trim() !== '');
  if (!isSaid) return null;
  return { ...(yield* handoffSteps(open, null, trusted)), by: 'extraction' };
}
