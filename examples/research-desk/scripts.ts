/** What the agents say without a model. */
const READERS = ['the city council', 'those who ride at night'];
const ARTICLE = `611,000 people took the night tram in 2025, 23 % more than a year before; the night bus lost 4 %. A ride costs the \
city €3.65 by tram and €4.97 by bus. "Since the tram runs at night I take the late shift again", writes a nurse. A neighbour \
asks to grind the curve at the market.`;

export const editor = {
  rules: [
    { when: { contains: 'published as' }, reply: 'It is out. {{last}}' },
    {
      when: { contains: 'is denied' },
      reply: 'Then it is not published. What should be changed?',
    },
    {
      when: { step: 1, contains: '(result of' },
      reply: 'Both have reported: this is the article.',
      calls: [{ name: 'publish', args: { title: 'The night tram pays', text: ARTICLE } }],
    },
    {
      when: { step: 1, contains: '(answer to' },
      reply: 'Then I know what to look for.',
      calls: [
        {
          name: 'delegate',
          args: {
            to: 'figures',
            task: 'Riders and costs of night tram and night bus in 2024 and 2025, per ride.',
          },
        },
        {
          name: 'delegate',
          args: { to: 'voices', task: 'What do people say of the night tram? Two voices.' },
        },
      ],
    },
    {
      when: { step: 1 },
      reply: 'One question first.',
      calls: [{ name: 'ask', args: { question: 'Who is the article for?', choices: READERS } }],
    },
  ],
};

export const figures = {
  rules: [
    { when: { step: 1 }, calls: [{ name: 'list_files', args: {} }] },
    {
      when: { step: 2 },
      calls: [
        { name: 'read_file', args: { name: 'ridership.csv' } },
        { name: 'read_file', args: { name: 'costs.csv' } },
      ],
    },
    {
      reply:
        'Tram: 498,000 riders in 2024, 611,000 in 2025; €3.65 a ride in 2025. Bus: 861,000, then 823,000; €4.97 (ridership.csv, costs.csv).',
    },
  ],
};

export const voices = {
  rules: [
    { when: { step: 1 }, calls: [{ name: 'read_file', args: { name: 'letters.md' } }] },
    {
      reply:
        '"Since the tram runs at night I take the late shift again" (a nurse); "It wakes us at two" (a neighbour), letters.md.',
    },
  ],
};
