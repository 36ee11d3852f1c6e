import * as z from 'zod';
import type { TroupeInput } from '../../library/config/agents-file.ts';
import type { AgentInput } from '../../library/config/agent-input.ts';
import type { ScriptRuleInput } from '../../providers/script.ts';
import { defineTool } from '../../tools/tool.ts';
import type { Author } from '../../events/index.ts';
import type { Troupe } from '../../library/troupe.ts';

/** Phrases of the story that trigger the agents' scripts. */
const CUES = {
  begin: 'We need a rate limiter',
  client: 'see when it is over its limit',
  profile: 'Profile the limiter',
  idle: 'buckets of idle keys',
  notes: 'check the release notes',
  status: 'Where do we stand',
} as const;

/** Output long enough that the coder's next prompts are compacted. */
const profile = defineTool({
  name: 'profile',
  description: 'Runs the program under load and returns every sample.',
  schema: z.object({ path: z.string() }),
  run: ({ path }) => {
    const samples = Array.from({ length: 420 }, (_, index) => {
      const us = 11 + ((index * 7_919) % 90);
      return `${String(index + 1).padStart(3)}  take()  ${us} us  ${us > 95 ? 'slow: the map was resized' : 'ok'}`;
    });
    return Promise.resolve([`${path}: 420 samples, p50 55 us, p99 99 us`, ...samples].join('\n'));
  },
});

/** The company that `troupe dev` runs without an agents file: three scripted agents, which need no API key. */
export const DEMO_COMPANY: TroupeInput = {
  tools: [profile],
  context: { summaries: 'extract' },
  agents: [
    scripted(
      { id: 'planner', name: 'Planner', role: 'manager', description: 'Plans the work and hands it out.' },
      [
        {
          when: { contains: CUES.status, step: 1 },
          reply: 'The limiter is written, profiled and reviewed. One thing is yours to decide.',
          calls: [
            {
              name: 'ask',
              args: { question: 'Do we ship it today?', choices: ['Today', 'After the weekend'] },
            },
          ],
        },
        { when: { contains: 'After the weekend' }, reply: 'After the weekend, then. I have noted it.' },
        { when: { contains: 'Today' }, reply: 'Then it goes out today; I watch the first hour.' },
        {
          when: { step: 1 },
          reply: 'I will have the coder make this.',
          calls: [
            {
              name: 'handoff',
              args: {
                to: 'coder',
                goal: 'Carry out what the user asked for',
                done: 'Read the request and split it into steps',
                next: 'Write the change, then pass it to the reviewer',
                why: 'It needs code',
              },
            },
          ],
        },
      ],
      ['ask'],
    ),
    scripted(
      { id: 'coder', name: 'Coder', role: 'worker', description: 'Writes the code.' },
      [
        {
          when: { contains: CUES.profile, step: 1 },
          reply: 'Running it under load.',
          calls: [{ name: 'profile', args: { path: 'src/rate-limit.ts' } }],
        },
        {
          when: { contains: '420 samples', step: 2 },
          reply: 'Half of the calls take 55 us or less; the slow ones are those in which the map grows.',
        },
        { when: { contains: CUES.idle }, reply: 'Ten minutes; then they are dropped by the next refill.' },
        {
          when: { contains: CUES.client },
          reply: '429 with a Retry-After header, computed from its bucket.',
        },
        {
          when: { contains: 'handed this conversation over to you', step: 1 },
          reply: 'The change is written and its tests pass.',
          calls: [
            {
              name: 'handoff',
              args: {
                to: 'reviewer',
                goal: 'Review the change',
                done: 'Change written, 12 tests pass',
                state: 'One file touched, no interface changed',
                why: 'Nobody reviews their own work',
              },
            },
          ],
        },
        {
          reply:
            'On it: I would start with a failing test, then write the smallest change that makes it pass.',
        },
      ],
      ['profile'],
    ),
    scripted({ id: 'reviewer', name: 'Reviewer', role: 'peer', description: 'Reviews what others made.' }, [
      {
        when: { contains: 'is asked for again' },
        reply:
          'The notes promise a limit per address, but what was built is one per key: the notes are wrong.',
      },
      {
        when: { contains: CUES.notes },
        reply: 'The notes promise a limit per address, but what was built',
        fail: {
          after: 57,
          code: 'provider_refused',
          message: 'the answer was stopped by the content filter',
        },
      },
      {
        when: { contains: 'handed this conversation over to you' },
        reply:
          'Reviewed: the change does what was asked, and the tests would have caught it otherwise. Ready to merge.',
      },
      { reply: 'I have read everything so far and see no problem.' },
    ]),
  ],
  defaults: { respondWhenUnaddressed: 'planner' },
};

interface ScriptedAgent {
  id: string;
  name: string;
  role: 'manager' | 'worker' | 'peer';
  description: string;
}

function scripted(
  { id, name, role, description }: ScriptedAgent,
  rules: readonly ScriptRuleInput[],
  more: readonly string[] = [],
): AgentInput {
  return {
    id,
    name,
    role,
    description,
    instructions: `You are ${name}. ${description}`,
    provider: 'scripted',
    model: 'demo',
    tools: ['handoff', ...more],
    contextWindow: 11_000,
    script: { rules: rules.map((rule) => ({ ...rule, chunk: 8, chunkDelayMs: 30 })) },
  };
}

/**
 * The sample conversation: handoffs, an agent that missed messages, a long tool output that fills a prompt, a failed turn and
 * its retry, a compaction, and a question to the viewer.
 */
const DEMO_CONVERSATION = 'demo';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const BEN: Author = { kind: 'user', id: 'ben', name: 'Ben' };

/** Plays the story once; an existing conversation stays unchanged. Ends when all agents are idle, or when the signal aborts. */
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
