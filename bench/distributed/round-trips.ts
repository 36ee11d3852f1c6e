import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { defineTool, type TroupeInput } from '../../src/index.ts';
import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { ANA, fill, messageText, report } from '../support.ts';
import { countDocuments } from './count-documents.ts';
import { openBenchDatabase } from './bench-database.ts';
import { NO_SWEEPS, openStage } from './stage.ts';

/**
 * Store operations for one turn, including the append of its message; the additional ones for a further step and a
 * further tool call; and the bytes written. Arguments: `memory` or `mongodb`, and the number of earlier events in the
 * conversation. On the server, commands are counted too, to check that an operation is one command.
 */
const [kind, before = '0'] = process.argv.slice(2);
const WARM_UP = 3;
const TURNS = 20;
/** By then the sweep of a starting process is over. */
const AFTER_SWEEP_MS = 200;

const note = defineTool({
  name: 'note',
  description: 'Takes a note.',
  schema: z.object({ text: z.string() }),
  run: () => 'Noted.',
});

/** An agent that calls the tool this many times in each step except the last, which answers. */
const agentOf = (id: string, callsOfSteps: readonly number[]): TroupeInput['agents'][0] => ({
  id,
  provider: 'scripted',
  contextWindow: 10_000_000,
  tools: ['note'],
  script: {
    rules: [
      ...callsOfSteps.map((calls, index) => ({
        when: { step: index + 1 },
        calls: Array.from({ length: calls }, () => ({ name: 'note', args: { text: 'x' } })),
      })),
      { reply: 'Understood, and noted.' },
    ],
  },
});
const definition: TroupeInput = {
  agents: [
    agentOf('plain', []),
    agentOf('one-call', [1]),
    agentOf('two-calls', [2]),
    agentOf('two-steps', [1, 1]),
  ],
  tools: [note],
};

await using database = kind === 'mongodb' ? await openBenchDatabase() : null;
const counted = countDocuments(database?.documents ?? createMemoryDocuments());
await using stage = await openStage({ definition, documents: counted.documents, limits: NO_SWEEPS });
const { troupe } = stage;

async function converse(agent: string, turns: number): Promise<void> {
  for (let index = 0; index < turns; index++) {
    await troupe.send(agent, { author: ANA, content: messageText(index), to: [agent] });
    await troupe.idle();
  }
}

async function costOf(agent: string) {
  await sleep(AFTER_SWEEP_MS);
  await converse(agent, WARM_UP);
  const jobs = await jobsAdded();
  counted.take();
  database?.takeCommands();
  await converse(agent, TURNS);
  const { trips, bytes, byName } = counted.take();
  const commands = database?.takeCommands() ?? 0;
  if (process.env['BENCH_DETAILS']) console.error(agent, trips / TURNS, commands / TURNS, byName);
  return {
    trips: trips / TURNS,
    bytes: bytes / TURNS,
    commands: commands / TURNS,
    jobs: ((await jobsAdded()) - jobs) / TURNS,
  };
}

async function jobsAdded(): Promise<number> {
  return (await stage.queueEvents())['added'] ?? 0;
}

await fill(troupe, 'plain', Number(before));
const plain = await costOf('plain');
const oneCall = await costOf('one-call');
const twoCalls = await costOf('two-calls');
const twoSteps = await costOf('two-steps');
// Another process, which knows the agent but has not loaded the conversation.
await using elsewhere = await openStage({ definition, documents: counted.documents, limits: NO_SWEEPS });
for (const conversation of ['elsewhere', 'plain']) {
  await sleep(AFTER_SWEEP_MS);
  counted.take();
  await elsewhere.troupe.send(conversation, { author: ANA, content: messageText(0), to: ['plain'] });
  await elsewhere.troupe.idle();
}
const first = counted.take();
if (process.env['BENCH_DETAILS']) console.error('first', first.byName);
const firstTrips = first.trips;

report({
  ...plain,
  firstTrips,
  perCall: twoCalls.trips - oneCall.trips,
  perStep: twoSteps.trips - twoCalls.trips,
  commandsPerCall: twoCalls.commands - oneCall.commands,
  commandsPerStep: twoSteps.commands - twoCalls.commands,
});
