import type { TroupeInput } from '../../library/config/agents-file.ts';
import type { ScriptRuleInput } from '../../providers/script.ts';

export const TEMPLATES = ['agent', 'team'] as const;
export type TemplateName = (typeof TEMPLATES)[number];

/** A company to start from. `test` is the body of its test, over the script alone. */
export interface Template {
  label: string;
  company: { agents: AgentPart[]; defaults?: TroupeInput['defaults'] };
  rules: ScriptRuleInput[];
  /** What `start` asks when it is given nothing. */
  question: string;
  testName: string;
  test: readonly string[];
}

interface AgentPart {
  id: string;
  description?: string;
  instructions: string;
  tools?: string[];
}

export const TEMPLATE: Record<TemplateName, Template> = {
  agent: {
    label: 'one agent',
    company: {
      agents: [{ id: 'helper', instructions: 'Answer briefly and kindly.' }],
      defaults: { respondWhenUnaddressed: 'helper' },
    },
    rules: [{ reply: 'This is answer {{n}} of script.json. Give agents a model to hear more.' }],
    question: 'What can you do?',
    testName: 'the helper answers',
    test: [
      `const { text, outcome } = await troupe.ask('test', 'What can you do?');`,
      `assert.equal(outcome, 'answered');`,
      `assert.match(text, /answer 1 of script/);`,
    ],
  },
  team: {
    label: 'a team: three agents that hand over to each other',
    company: {
      agents: [
        {
          id: 'desk',
          instructions: 'Find out what the customer needs. Hand over to @billing or @technician.',
          tools: ['handoff'],
        },
        {
          id: 'billing',
          description: 'Invoices, payments and refunds.',
          instructions: 'Answer questions about invoices. Hand over to @technician what is technical.',
          tools: ['handoff'],
        },
        {
          id: 'technician',
          description: 'Devices, logins and outages.',
          instructions: 'Solve technical problems step by step. Hand over to @billing what is about money.',
          tools: ['handoff'],
        },
      ],
      defaults: { respondWhenUnaddressed: 'desk' },
    },
    rules: [
      handOver('invoice', 'billing', 'Explain the invoice'),
      { ...handOver('', 'technician', 'Solve the problem'), when: { agent: 'desk', step: 1 } },
      { when: { agent: 'billing' }, reply: 'The second line of your invoice is the setup, paid once.' },
      { when: { agent: 'technician' }, reply: 'Please restart the device, and tell me what you see.' },
      { when: { agent: 'desk' }, reply: '' },
    ],
    question: 'Why is my invoice higher than last month?',
    testName: 'a question about an invoice is handed over to billing',
    test: [
      `const { text, replies } = await troupe.ask('test', 'Why is my invoice so high?');`,
      `assert.equal(replies.at(-1)?.author.id, 'billing');`,
      `assert.match(text, /setup, paid once/);`,
    ],
  },
};

function handOver(contains: string, to: string, goal: string): Template['rules'][number] {
  const args = { to, goal, done: 'Read the question', next: 'Answer the customer', why: `It is for ${to}` };
  return {
    when: { agent: 'desk', step: 1, contains },
    reply: `I am bringing in @${to}.`,
    calls: [{ name: 'handoff', args }],
  };
}
