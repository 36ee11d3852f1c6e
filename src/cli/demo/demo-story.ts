import type { Author } from '../../events/index.ts';
import type { Troupe } from '../../library/troupe.ts';

/**
 * The sample conversation: handoffs, an agent that missed messages, a long tool output that makes a prompt grow, a failed
 * turn and its retry, a compaction, and a question to the viewer.
 */
const DEMO_CONVERSATION = 'demo';

/** Phrases of the story that trigger the agents' scripts. */
export const CUES = {
  begin: 'We need a rate limiter',
  client: 'see when it is over its limit',
  profile: 'Profile the limiter',
  idle: 'buckets of idle keys',
  notes: 'check the release notes',
  status: 'Where do we stand',
} as const;

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const BEN: Author = { kind: 'user', id: 'ben', name: 'Ben' };

/** Plays the story once; an existing conversation stays as it is. Ends when all agents are idle, or with the signal. */
export async function playDemo(troupe: Troupe, signal: AbortSignal): Promise<void> {
  const known = await troupe.conversations();
  if (known.some(({ id }) => id === DEMO_CONVERSATION)) return;
  const say = async (author: Author, to: string[], content: string) => {
    if (signal.aborted) return;
    await troupe.send(DEMO_CONVERSATION, { author, ...(to.length > 0 && { to }), content });
    await troupe.idle();
  };
  await say(ANA, [], `${CUES.begin} for the public API: 100 requests a minute per key, and no new service.`);
  await say(BEN, ['coder'], `What does a client ${CUES.client}?`);
  await say(ANA, ['coder'], `${CUES.profile} under load, please. All samples, not the averages.`);
  await say(BEN, ['reviewer'], `Please ${CUES.notes}, too.`);
  await retryLast(troupe);
  await say(ANA, ['coder'], `And how long do the ${CUES.idle} live?`);
  await say(ANA, ['planner'], `${CUES.status}?`);
}

/** Retries the failed turn, as a user would. */
async function retryLast(troupe: Troupe): Promise<void> {
  const { events } = await troupe.events(DEMO_CONVERSATION, { limit: 5_000 });
  const failed = events.findLast(({ kind }) => kind === 'turn.failed');
  if (!failed?.turn) return;
  await troupe.command({ command: 'retry', turn: failed.turn }, BEN);
  await troupe.idle();
}
