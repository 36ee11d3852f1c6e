import { defineTool } from '../../../../src/index.ts';
import { cpuMs, storedBytes, textOfBytes } from '../../measures.ts';
import { ANA, type Move, openTroupe } from '../troupe-agent.ts';

const [, , , size = '0', dir = ''] = process.argv;
const turns = Number(size);
const AGENTS = ['planner', 'coder', 'reviewer'];
let turn = 0;

const path = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } as const;
/** A file is stored whole; the prompt has its beginning. */
const writeFile = defineTool({
  name: 'write_file',
  description: 'Writes a file.',
  schema: path,
  previewBytes: 256,
  run: (args) => textOfBytes(30_000, (args as { path: string }).path),
});
const search = defineTool({
  name: 'search',
  description: 'Searches everything.',
  schema: path,
  previewBytes: 256,
  run: (args) => textOfBytes(80_000, (args as { path: string }).path),
});
const readFile = defineTool({
  name: 'read_file',
  description: 'Reads a file.',
  schema: path,
  bounded: true,
  run: (args) => textOfBytes(4_000, (args as { path: string }).path),
});

function move({ trace }: { trace: { step: number } }): Move {
  if (trace.step > 1) return { text: textOfBytes(20_000, `answer ${turn}`) };
  const call = (name: string, of: string) => ({ name, args: { path: `${of}-${turn}` } });
  const calls = [call('write_file', 'left'), call('write_file', 'right'), call('read_file', 'notes')];
  return { text: '', calls: turn % 10 === 9 ? [...calls, call('search', 'all')] : calls };
}

const open = () =>
  openTroupe(dir, {
    agents: AGENTS,
    instructions: 'Write code.',
    tools: [writeFile, search, readFile],
    move,
  });
const ask = (troupe: Awaited<ReturnType<typeof open>>) =>
  troupe.ask('measured', { author: ANA, to: [AGENTS[turn % AGENTS.length] ?? ''], content: `Task ${turn}.` });

const troupe = await open();
const began = performance.now();
const before = cpuMs();
for (; turn < turns; turn++) {
  await ask(troupe);
  if (turn % 50 === 49) console.error(`delta-channel troupe: turn ${turn + 1} of ${turns}`);
}
await troupe[Symbol.asyncDispose]();
const seconds = (performance.now() - began) / 1_000;
const cpuSeconds = (cpuMs() - before) / 1_000;
const storedMb = storedBytes(dir) / 1e6;
const opening = performance.now();
const again = await open();
await ask(again);
const resumeMs = performance.now() - opening;
await again[Symbol.asyncDispose]();
console.log(JSON.stringify({ storedMb, seconds, cpuSeconds, resumeMs }));
process.exit(0);
