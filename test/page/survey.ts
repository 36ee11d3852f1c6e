import type { PageStage, Play } from './stage.ts';

const delegate = (to: string, task: string) => ({ name: 'delegate', args: JSON.stringify({ to, task }) });

const REPORT = [
  'Plot 7 is **dry**, plot 9 is not.',
  '',
  '| plot | water | fit for building |',
  '|---|---|---|',
  '| 7 | 40 cm below | yes |',
  '| 9 | at the surface | after drainage |',
  '',
  '1. Begin with plot 7.',
  '2. Drain plot 9 along the quay: `drain --from quay --to basin`.',
  '',
  '```ts',
  "const plan = plots.filter(({ water }) => water < -0.3).map(({ id }) => ({ id, begin: 'Monday' }));",
  '```',
].join('\n');

/** Agents that give each other tasks. A reply has every kind of formatting, another one is read from right to left. */
export const SURVEY: Play = {
  company: (baseUrl) => ({
    agents: ['lead', 'surveyor', 'technician', 'clerk'].map((id) => ({
      id,
      provider: 'openai-compatible',
      model: id,
      baseUrl,
      apiKeyEnv: 'KEY',
      tools: ['delegate'],
    })),
  }),
  lines: [
    {
      agent: 'lead',
      hears: 'Which of plots 7 and 9',
      says: {
        text: 'I have both looked at.',
        calls: [
          delegate('surveyor', 'Measure the water in plots 7 and 9.'),
          delegate('clerk', 'Who owns plots 7 and 9?'),
        ],
      },
    },
    {
      agent: 'surveyor',
      hears: 'Measure the water',
      says: { calls: [delegate('technician', 'Calibrate the probe, please.')] },
    },
    { agent: 'technician', hears: 'Calibrate', says: { text: 'The probe is calibrated.' } },
    { agent: 'clerk', hears: 'Who owns', says: { text: 'Both belong to the harbour office since 1902.' } },
    {
      agent: 'surveyor',
      hears: 'is calibrated',
      says: { text: 'Plot 7: 40 cm below. Plot 9: at the surface.' },
    },
    { agent: 'lead', hears: /at the surface|since 1902/, says: { text: REPORT } },
    {
      agent: 'lead',
      hears: 'שלום',
      says: { text: 'המגרש יבש. אפשר להתחיל ביום שני, והמספר שלו הוא 7.' },
    },
  ],
};

export async function playSurvey(stage: PageStage): Promise<void> {
  await stage.play('plots', ['lead'], 'Which of plots 7 and 9 can be built on first?');
  await stage.play('shalom', ['lead'], 'שלום, האם מגרש 7 יבש? האם אפשר לבנות עליו?');
}
