import * as z from 'zod';
import { defineTool, defineTroupe } from '../../src/index.ts'; // from 'troupe' in your own project
import { model } from '../model.ts';

const refund = defineTool({
  name: 'refund',
  description: 'Pays an amount back to the customer.',
  schema: z.object({ euros: z.number() }),
  needsApproval: true,
  run: ({ euros }) => `${euros} euros are on their way back.`,
});

const handoff = { to: 'billing', goal: 'Refund the second charge.', why: 'It is about money.' };
const script = {
  desk: { rules: [{ reply: 'I hand you over to billing.', calls: [{ name: 'handoff', args: handoff }] }] },
  billing: {
    rules: [
      { when: { contains: 'on their way' }, reply: 'Done: the money is on its way back to you.' },
      { when: { contains: 'denied' }, reply: 'I am sorry: it was not approved.' },
      { reply: 'You were charged twice.', calls: [{ name: 'refund', args: { euros: 12 } }] },
    ],
  },
};

export const troupe = defineTroupe({
  // Of @troupe/doors: the window of this folder, and that of ../ag-ui-window.
  doors: ['ai-sdk', 'ag-ui'],
  tools: [refund],
  agents: [
    {
      id: 'desk',
      name: 'Desk',
      instructions: 'Find out what the customer needs. Hand questions on money over to @billing.',
      tools: ['handoff'],
      ...model(script.desk),
    },
    {
      id: 'billing',
      name: 'Billing',
      instructions: 'Answer for money. Refund what was charged twice.',
      tools: ['refund'],
      ...model(script.billing),
    },
  ],
  defaults: { respondWhenUnaddressed: 'desk' },
  // The window of `npx vite examples/chat-window` may write.
  access: { cors: ['http://localhost:5173'] },
});
