import * as z from 'zod';
import { defineTool, defineTroupe } from '../../../src/index.ts';

export const Refund = z.object({ euros: z.number().max(100), why: z.string() });

const refund = defineTool({
  name: 'refund',
  description: 'Refunds money to a customer.',
  schema: Refund,
  needsApproval: { by: ['dana'] },
  run: ({ euros }) => `refunded ${euros}`,
});

const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks an invoice up.',
  schema: z.object({ invoice: z.string() }),
  idempotent: true,
  run: ({ invoice }) => `invoice ${invoice}: 90 euros`,
});

function handOver(goal: string) {
  return { name: 'handoff', args: { to: 'billing', goal, why: 'It is money.' } };
}

/** A front desk, a colleague who asks and refunds, and one who looks things up for her. */
export const support = defineTroupe({
  tools: [refund, lookUp],
  agents: [
    {
      id: 'desk',
      name: 'Front desk',
      role: 'manager',
      instructions: 'Hand over to @billing what is about money.',
      tools: ['handoff'],
      provider: 'scripted',
      script: {
        rules: [
          { when: { contains: 'costs more' }, reply: 'That is for billing.', calls: [handOver('A refund?')] },
          { when: { contains: 'charge' }, reply: 'That is a reservation.' },
          { reply: 'You are welcome.' },
        ],
      },
    },
    {
      id: 'billing',
      instructions: 'Ask @clerk for the figures, and Dana before you refund.',
      tools: ['ask', 'remind', 'delegate', 'refund'],
      provider: 'scripted',
      script: {
        rules: [
          { when: { contains: 'refunded' }, reply: 'It is on its way back to you.' },
          { when: { contains: 'is denied' }, reply: 'I am sorry: no refund.' },
          {
            when: { step: 1, contains: 'refund it' },
            reply: 'Dana agrees.',
            calls: [{ name: 'refund', args: { euros: 90, why: 'a promise' } }],
          },
          { when: { contains: 'Reminder that' }, reply: 'It takes longer than I thought.' },
          { when: { contains: '90 euros' }, reply: 'I know the invoice now.', calls: [question()] },
          {
            when: { step: 1, matches: 'handed (this conversation )?over' },
            reply: 'One moment.',
            calls: [{ name: 'delegate', args: { to: 'clerk', task: 'Look up invoice 4711.' } }],
          },
          { reply: 'Noted.' },
        ],
      },
    },
    {
      id: 'clerk',
      role: 'worker',
      instructions: 'Look invoices up.',
      tools: ['look_up'],
      provider: 'scripted',
      script: {
        rules: [
          { when: { step: 1 }, calls: [{ name: 'look_up', args: { invoice: '4711' } }] },
          { reply: 'Invoice 4711 is 90 euros.' },
        ],
      },
    },
  ],
  defaults: { respondWhenUnaddressed: 'desk', afterHandoff: 'default' },
});

function question() {
  const args = { question: 'Refund 90 euros?', by: ['dana'], choices: ['refund it', 'refund nothing'] };
  return { name: 'ask', args };
}
