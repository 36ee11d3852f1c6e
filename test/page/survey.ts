import type { Play, PageStage } from './stage.ts';

const delegate = (to: string, task: string) => ({ name: 'delegate', args: { to, task } });

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

const scripted = (id: string, rules: object[], tools: string[] = []) => ({
  id,
  provider: 'scripted' as const,
  model: 'test',
  tools,
  script: { rules },
});

/** Agents that give each other tasks, with a reply that has every kind of formatting. */
export const SURVEY: Play = {
  company: () =>
    ({
      agents: [
        scripted(
          'lead',
          [
            { when: { contains: 'שלום' }, reply: 'המגרש יבש. אפשר להתחיל ביום שני, והמספר שלו הוא 7.' },
            { when: { contains: 'at the surface' }, reply: REPORT },
            {
              calls: [
                delegate('surveyor', 'Measure the water in plots 7 and 9.'),
                delegate('clerk', 'Who owns plots 7 and 9?'),
              ],
            },
          ],
          ['delegate'],
        ),
        scripted(
          'surveyor',
          [
            { when: { contains: 'is calibrated' }, reply: 'Plot 7: 40 cm below. Plot 9: at the surface.' },
            { calls: [delegate('technician', 'Calibrate the probe, please.')] },
          ],
          ['delegate'],
        ),
        scripted('technician', [{ reply: 'The probe is calibrated.' }]),
        scripted('clerk', [{ reply: 'Both plots belong to the harbour office since 1902.' }]),
      ],
    }) as ReturnType<Play['company']>,
  lines: [],
};

export async function playSurvey(stage: PageStage): Promise<void> {
  await stage.play('plots', ['lead'], 'Which of plots 7 and 9 can be built on first?');
  await stage.play('shalom', ['lead'], 'שלום, האם מגרש 7 יבש? האם אפשר לבנות עליו?');
}
