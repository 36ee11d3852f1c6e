import { defineTroupe } from '../../src/index.ts'; // from 'troupe' in your own project
import { model } from '../model.ts';
import * as scripts from './scripts.ts';

const COMMON = `If you cannot or may not decide something, ask people, by "dana", with the choices that there are; set yourself
a reminder for in 30 minutes in the same step. If you are reminded and nobody has answered, tell the customer that it takes
longer. With the answer, tell the customer how it ends.`;

export const troupe = defineTroupe({
  agents: [
    {
      id: 'triage',
      role: 'manager',
      description: 'Finds out what a customer needs.',
      instructions:
        'Find out whose field this is, and hand over at once: @billing for money, @technical for what does not work.',
      tools: ['handoff'],
      ...model(scripts.triage),
    },
    {
      id: 'billing',
      description: 'Answers questions on money.',
      capabilities: ['invoice', 'charge', 'refund', 'payment', 'price'],
      instructions: `You answer for money. You may not refund more than 50 euros yourself. ${COMMON}`,
      tools: ['ask', 'remind'],
      ...model(scripts.billing),
    },
    {
      id: 'technical',
      description: 'Answers questions on the program.',
      capabilities: ['error', 'crash', 'export', 'login', 'password'],
      instructions: `You answer for the program. ${COMMON}`,
      tools: ['ask', 'remind', 'handoff'],
      ...model(scripts.technical),
    },
  ],
  // The agent whose capabilities best match the words of a message; triage when none match.
  routing: { by: 'capability', agents: ['billing', 'technical'] },
  defaults: { respondWhenUnaddressed: 'triage' },
  // A question that nobody answers within a day expires, and the agent is notified.
  limits: { questionMs: 24 * 3_600_000 },
});
