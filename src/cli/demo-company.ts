import type { AgentInput, TroupeInput } from '../agents-file.ts';

/** What `troupe dev` runs where there is no agents file: three agents that follow a script, so no key is needed. */
export const DEMO_COMPANY: TroupeInput = {
  agents: [
    scripted('planner', 'Planner', 'manager', 'Plans the work and hands it out.', [
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
    ]),
    scripted('coder', 'Coder', 'worker', 'Writes the code.', [
      {
        when: { contains: 'handed over to you', step: 1 },
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
        reply: 'On it: I would start with a failing test, then write the smallest change that makes it pass.',
      },
    ]),
    scripted('reviewer', 'Reviewer', 'peer', 'Reviews what others made.', [
      {
        when: { contains: 'handed over to you' },
        reply:
          'Reviewed: the change does what was asked, and the tests would have caught it otherwise. Ready to merge.',
      },
      { reply: 'I have read everything so far and see no problem.' },
    ]),
  ],
  defaults: { respondWhenUnaddressed: 'planner' },
};

type ScriptedRules = Extract<Extract<AgentInput, { provider: 'scripted' }>['script'], object>['rules'];

function scripted(
  id: string,
  name: string,
  role: 'manager' | 'worker' | 'peer',
  description: string,
  rules: ScriptedRules,
): AgentInput {
  return {
    id,
    name,
    role,
    description,
    instructions: `You are ${name}. ${description}`,
    provider: 'scripted',
    model: 'demo',
    tools: ['handoff'],
    script: { rules: rules.map((rule) => ({ ...rule, chunk: 8, chunkDelayMs: 30 })) },
  };
}
