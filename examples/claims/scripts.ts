import type { ScriptInput } from '../../src/index.ts';

/** What the agents say without a model. */
export const intake: ScriptInput = {
  rules: [
    ({ tasks, trigger }) => {
      if (tasks.length === 0) return null;
      const state = trigger.match(/claim \d+|^(?:Nothing|Odd|.* euros).*$/gm)?.join('\n');
      return { calls: [{ name: 'handoff', args: { to: 'adjuster', goal: 'Settle the claim.', state } }] };
    },
    {
      when: { contains: 'is open' },
      calls: [
        { name: 'delegate', args: { to: 'assessor', task: 'What does the damage cost? {{last}}.' } },
        { name: 'delegate', args: { to: 'fraud', task: 'Is anything odd? {{last}}.', attachments: [] } },
      ],
    },
    ({ texts: [said = ''] }) => ({ calls: [{ name: 'open_claim', args: { what: said.split('\n')[0] } }] }),
  ],
};

export const assessor: ScriptInput = {
  rules: [
    { when: { contains: '(answer to' }, reply: 'Window 1,400, floor 4,800: 6200 euros.' },
    {
      when: { contains: '[image: photo.png' },
      calls: [{ name: 'ask', args: { question: 'What is the floor below the window made of?' } }],
    },
    { reply: 'By the list of prices: 300 euros.' },
  ],
};

export const fraud: ScriptInput = {
  rules: [
    { when: { step: 1 }, calls: [{ name: 'earlier_claims', args: {} }] },
    { when: { matches: '"what".*"what"' }, reply: 'Odd: this is not the first claim.' },
    { reply: 'Nothing is odd.' },
  ],
};

export const adjuster: ScriptInput = {
  rules: [
    { when: { contains: 'are paid' }, reply: 'Your claim is settled: {{last}}.' },
    { when: { contains: 'is denied' }, reply: 'I am sorry, this is not paid.' },
    { when: { contains: 'Odd:' }, reply: 'We look at your claims together, and write to you.' },
    ({ trigger }) => {
      const [, claim, euros] = /claim (\d+).*?(\d+) euros/s.exec(trigger) ?? [];
      return { calls: [{ name: 'pay', args: { claim: Number(claim), euros: Number(euros) } }] };
    },
  ],
};

/** Says what its prompt has of the work of others, and nothing else. */
export const letters: ScriptInput = {
  rules: [
    ({ messages }) => {
      const prompt = messages.map(({ content }) => content).join('\n');
      const [, assessed] = /finished a task .*\n.*"What does.*\n(.*)/.exec(prompt) ?? [];
      const [, approver = 'nobody'] = /\[(\w+) approved a call/.exec(prompt) ?? [];
      const [, paid] = /called pay .*\n.*\n(.*)/.exec(prompt) ?? [];
      return `Dear Mia: ${assessed} Approved by ${approver}: ${paid}.`;
    },
  ],
};
