import { defineTool } from '../../../../src/index.ts';
import { cpuMs, storedBytes, textOfBytes } from '../../measures.ts';
import { ANA, type Company, openTroupe } from '../troupe-agent.ts';

const [, , , size = '0', dir = ''] = process.argv;
const wanted = Number(size);
/** The conversation before the run: 209,000 tokens of 4 characters. */
const MESSAGES = 418;
const MESSAGE_BYTES = 2_000;
const RESULT_BYTES = 5_000;

let calls = 0;
let sentBytes = 0;
const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks something up.',
  schema: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] },
  bounded: true,
  run: (args) => textOfBytes(RESULT_BYTES, `result ${(args as { number: number }).number}`),
});
const company: Company = {
  agents: ['agent'],
  instructions: 'Help.',
  tools: [lookUp],
  move({ messages }) {
    calls += 1;
    for (const { content } of messages) sentBytes += content.length;
    if (calls % 25 === 0) console.error(`history-growth troupe: call ${calls} of ${wanted}`);
    return calls < wanted
      ? { text: '', calls: [{ name: 'look_up', args: { number: calls } }] }
      : { text: 'That is all.' };
  },
};
const quiet = { author: ANA, replyTo: 'none' } as const;
const earlier = await openTroupe(dir, company);
for (let index = 0; index < MESSAGES; index++) {
  const content = textOfBytes(MESSAGE_BYTES, `message ${index}`);
  await earlier.send('measured', { ...quiet, content });
}
await earlier[Symbol.asyncDispose]();
const storedBefore = storedBytes(dir);
const troupe = await openTroupe(dir, company);
const began = performance.now();
const before = cpuMs();
const { outcome } = await troupe.ask('measured', {
  author: ANA,
  to: ['agent'],
  content: 'Look everything up.',
});
const seconds = (performance.now() - began) / 1_000;
const cpuSeconds = (cpuMs() - before) / 1_000;
await troupe[Symbol.asyncDispose]();
if (outcome !== 'answered') throw new Error(`the turn ended as ${outcome} after ${calls} calls`);
const storedMb = (storedBytes(dir) - storedBefore) / 1e6;
console.log(JSON.stringify({ calls, storedMb, sentMb: sentBytes / 1e6, seconds, cpuSeconds }));
process.exit(0);
