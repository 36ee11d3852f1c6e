import { defineTool } from '../../../../src/index.ts';
import { cpuMs } from '../../measures.ts';
import { ANA, openTroupe } from '../troupe-agent.ts';
import { DESCRIPTION, FIELDS, gapClock, INSTRUCTIONS, resultOf, TOOL_NAMES, TURNS } from './agent.ts';

const [, , , size = '0', dir = ''] = process.argv;
const steps = Number(size);
const gaps = gapClock();
const properties = Object.fromEntries(FIELDS.map((name) => [name, { type: 'string' as const }]));
const tools = TOOL_NAMES.map((name, index) =>
  defineTool({
    name,
    description: DESCRIPTION,
    schema: { type: 'object', properties },
    bounded: true,
    run: () => resultOf(index),
  }),
);
const troupe = await openTroupe(dir, {
  agents: ['agent'],
  instructions: INSTRUCTIONS,
  tools,
  move({ trace: { step } }) {
    gaps.starts(step - 1);
    return step < steps
      ? {
          text: '',
          calls: [{ name: TOOL_NAMES[step % TOOL_NAMES.length] ?? '', args: { order: `${step}` } }],
        }
      : { text: 'Done.' };
  },
  answered: gaps.ends,
});
const turn = (conversation: string) =>
  troupe.ask(conversation, { author: ANA, to: ['agent'], content: 'Go.' });
await turn('warm-up');
gaps.measure();
const before = cpuMs();
for (let index = 0; index < TURNS; index++) await turn(`measured-${index}`);
const cpu = (cpuMs() - before) / (TURNS * steps);
console.log(JSON.stringify({ ...gaps.figures(), cpuMs: cpu }));
process.exit(0);
