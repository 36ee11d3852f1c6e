import type { TroupeInput } from '../../src/index.ts'; // from 'troupe' in your own project

/**
 * The agents that `docker compose up` runs unless TROUPE_AGENTS names another file. They follow a script, so no key
 * is needed. The image holds no sources, only the build, so this file may import nothing but types.
 */
export const troupe: TroupeInput = {
  agents: [
    {
      id: 'planner',
      instructions: 'Plan, then hand over to @coder.',
      tools: ['handoff'],
      provider: 'scripted',
      script: {
        rules: [
          {
            when: { step: 1 },
            reply: 'The coder will do it.',
            calls: [{ name: 'handoff', args: handoff() }],
          },
          { reply: 'It is with the coder.' },
        ],
      },
    },
    {
      id: 'coder',
      role: 'worker',
      instructions: 'Write small, tested code.',
      provider: 'scripted',
      script: { rules: [{ reply: 'Change {{n}} of mine is written and tested.' }] },
    },
  ],
  defaults: { respondWhenUnaddressed: 'planner' },
};

function handoff() {
  return {
    to: 'coder',
    goal: 'Carry out what the user asked for',
    done: 'Read the request',
    next: 'Write the change',
    why: 'It needs code',
  };
}
