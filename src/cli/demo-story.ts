import type { Author } from '../events/index.ts';
import type { Troupe } from '../troupe.ts';

/**
 * What there is to see before anybody has said a word: hand-overs, an agent that missed something, a long tool output that
 * makes a prompt grow, a turn that fails and is taken again, a history that is shortened, and a question to whoever looks.
 */
const DEMO_CONVERSATION = 'demo';

/** Words of the story that its company's scripts answer to. */
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

/** Plays it once; a conversation that is there already is left as it is. Ends when all is quiet, or with the signal. */
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

/** As somebody would who presses Retry. */
async function retryLast(troupe: Troupe): Promise<void> {
  const { events } = await troupe.events(DEMO_CONVERSATION, { limit: 5_000 });
  const failed = events.findLast(({ kind }) => kind === 'turn.failed');
  if (!failed?.turn) return;
  await troupe.command({ command: 'retry', turn: failed.turn }, BEN);
  await troupe.idle();
}
