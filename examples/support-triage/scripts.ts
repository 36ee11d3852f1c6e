/** What the agents say without a model. */
const CHOICES = ['refund 90 euros', 'refund nothing', 'call the customer'];

export const triage = {
  rules: [
    {
      reply: 'That sounds like a question on money.',
      calls: [
        {
          name: 'handoff',
          args: {
            to: 'billing',
            goal: 'Say whether the customer gets the old price for the year that was renewed.',
            next: 'Ask Dana: it is more than you may decide.',
            why: 'It is about money.',
          },
        },
      ],
    },
  ],
};

export const billing = {
  rules: [
    { when: { contains: 'refund 90' }, reply: 'Good news: the 90 euros are on their way back to you.' },
    {
      when: { contains: 'nobody answered in time' },
      reply: 'My colleague could not decide today. I ask her again tomorrow, and you will hear from me.',
    },
    { when: { contains: '(answer to' }, reply: 'My colleague has decided, and will write to you herself.' },
    {
      when: { contains: 'Reminder that you asked for' },
      reply: 'This takes longer than I thought: my colleague has not decided yet. You will hear from me.',
    },
    {
      when: { step: 1, matches: 'handed (this conversation )?over to you' },
      reply: 'I may not decide that alone.',
      calls: [
        { name: 'remind', args: { text: 'Has Dana answered?', inMinutes: 30 } },
        {
          name: 'ask',
          args: {
            question: 'Renewed at the new price, 90 euros more. Refund it?',
            by: ['dana'],
            choices: CHOICES,
          },
        },
      ],
    },
    {
      reply:
        'Your invoice of May was paid once; what you see twice is a reservation, which ends in three days.',
    },
  ],
};

export const technical = {
  rules: [{ reply: 'The export is fixed in version 2.4: please update.' }],
};
