import { agent, company, instructions, type Mutant, withTool, without } from './mutant.ts';

const ASKS = 'billing asks Dana alone, with the choices that there are';
const ORDER = 'the customer hears first that it takes longer, then how it ends';
const BILLING_WOKEN = 'billing is woken, and triage is not';
const KNOWS_HOW = 'billing knows whom to ask, and that it has to remind itself';

export const MUTANTS: readonly Mutant[] = [
  {
    breaks: 'prompt',
    what: 'billing may refund 500 euros',
    change: instructions('billing', '50 euros', '500 euros'),
    caughtBy: 'billing knows how much it may refund',
  },
  {
    breaks: 'prompt',
    what: 'billing is not told whom to ask',
    change: instructions('billing', 'by "dana", '),
    caughtBy: KNOWS_HOW,
  },
  {
    breaks: 'prompt',
    what: 'billing is not told to remind itself',
    change: instructions('billing', /set yourself\s+a reminder for in 30 minutes in the same step/),
    caughtBy: KNOWS_HOW,
  },
  {
    breaks: 'prompt',
    what: 'triage is not told to hand over at once',
    change: instructions('triage', 'hand over at once', 'answer'),
    caughtBy: 'triage knows whom to hand over to',
  },
  {
    breaks: 'prompt',
    what: 'technical has the instructions of billing',
    change: instructions('technical', 'You answer for the program.', 'You answer for money.'),
    caughtBy: 'technical knows that it answers for the program',
  },
  {
    breaks: 'tool',
    what: 'triage cannot hand over',
    change: without('triage', 'handoff'),
    caughtBy: 'triage hands over to billing, with a goal',
  },
  { breaks: 'tool', what: 'billing cannot ask', change: without('billing', 'ask'), caughtBy: ASKS },
  {
    breaks: 'tool',
    what: 'billing cannot remind itself',
    change: without('billing', 'remind'),
    caughtBy: ORDER,
  },
  {
    breaks: 'tool',
    what: 'billing can hand over',
    change: withTool('billing', 'handoff'),
    caughtBy: 'billing cannot hand over: money stays with it',
  },
  {
    breaks: 'tool',
    what: 'technical cannot hand over',
    change: without('technical', 'handoff'),
    caughtBy: 'technical may hand over what is not its field',
  },
  {
    breaks: 'routing',
    what: 'billing has lost its capabilities',
    change: agent('billing', () => ({ capabilities: [] })),
    caughtBy: BILLING_WOKEN,
  },
  {
    breaks: 'routing',
    what: 'technical is not for exports',
    change: agent('technical', () => ({ capabilities: ['login', 'password'] })),
    caughtBy: 'technical is woken, and answers',
  },
  {
    breaks: 'routing',
    what: 'nothing is routed',
    change: company({ routing: undefined }),
    caughtBy: BILLING_WOKEN,
  },
  {
    breaks: 'routing',
    what: 'billing is not among those who are routed to',
    change: company({ routing: { by: 'capability', agents: ['technical'] } }),
    caughtBy: BILLING_WOKEN,
  },
  {
    breaks: 'routing',
    what: 'what fits nobody goes to technical',
    change: company({ defaults: { respondWhenUnaddressed: 'technical' } }),
    caughtBy: 'triage is woken, as the words are of no field',
  },
  {
    breaks: 'routing',
    what: 'after a hand-over the customer is back at triage',
    change: company({ defaults: { respondWhenUnaddressed: 'triage', afterHandoff: 'default' } }),
    caughtBy: 'after the hand-over, billing hears what the customer says next',
  },
  {
    breaks: 'limit',
    what: 'a question stays open for a week',
    change: company({ limits: {} }),
    caughtBy: 'the question ends, and billing is woken with that',
  },
];
