import { agent, company, instructions, type Mutant, tool, without } from './mutant.ts';

const PHOTO = 'the assessor has the photo, and fraud works beside it without';
const APPROVAL = 'nothing is paid before Dana, and nobody else, has approved it';
const LETTER = 'letters, which was not there, knows what was assessed, approved and paid';
const SMALL = 'the first is paid without Dana';
const SECOND = 'the second is looked at';
const KNOWN = 'each knows what is its own to decide';

export const MUTANTS: readonly Mutant[] = [
  {
    breaks: 'prompt',
    what: 'intake is not told to keep the photo from fraud',
    change: instructions('intake', ', with no attachments'),
    caughtBy: KNOWN,
  },
  {
    breaks: 'prompt',
    what: 'adjuster is not told of Dana',
    change: instructions('adjuster', 'Above 5,000 euros your call waits for Dana. '),
    caughtBy: KNOWN,
  },
  {
    breaks: 'prompt',
    what: 'letters may invent',
    change: instructions('letters', ' Only what you were told.'),
    caughtBy: KNOWN,
  },
  {
    breaks: 'prompt',
    what: 'letters sees words alone',
    change: agent('letters', () => ({ sees: 'words' })),
    caughtBy: LETTER,
  },
  {
    breaks: 'prompt',
    what: 'letters joins without the past',
    change: agent('letters', () => ({ join: 'fresh' })),
    caughtBy: LETTER,
  },
  {
    breaks: 'tool',
    what: 'nobody approves payments',
    change: tool('pay', { needsApproval: false }),
    caughtBy: APPROVAL,
  },
  {
    breaks: 'tool',
    what: 'anybody approves payments',
    change: tool('pay', { needsApproval: true }),
    caughtBy: APPROVAL,
  },
  {
    breaks: 'tool',
    what: 'Dana approves small payments, too',
    change: tool('pay', { needsApproval: { by: ['dana'] } }),
    caughtBy: SMALL,
  },
  {
    breaks: 'tool',
    what: 'fraud cannot look at earlier claims',
    change: without('fraud', 'earlier_claims'),
    caughtBy: SECOND,
  },
  {
    breaks: 'tool',
    what: 'there are no earlier claims',
    change: tool('earlier_claims', { run: () => [] }),
    caughtBy: SECOND,
  },
  {
    breaks: 'tool',
    what: 'assessor cannot ask',
    change: without('assessor', 'ask'),
    caughtBy: 'the claimant is asked for what the photo does not show',
  },
  {
    breaks: 'routing',
    what: 'claims go to the adjuster',
    change: company({ defaults: { respondWhenUnaddressed: 'adjuster' } }),
    caughtBy: PHOTO,
  },
  {
    breaks: 'routing',
    what: 'intake cannot hand over',
    change: without('intake', 'handoff'),
    caughtBy: APPROVAL,
  },
];
