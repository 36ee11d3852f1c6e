import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { ANA, report } from '../support.ts';
import { RALLY, RALLY_TURNS, rallyStart } from '../rally.ts';
import { NO_SWEEPS, openStage } from './stage.ts';

/** Jobs added to the queue, and actors taken from it, per turn of two agents that hand over to each other. */
let taken = 0;
await using stage = await openStage({
  definition: RALLY,
  documents: createMemoryDocuments(),
  limits: NO_SWEEPS,
  onTaken: () => (taken += 1),
});
const { troupe } = stage;
const jobs = async () => (await stage.queueEvents())['added'] ?? 0;
// Both have joined before it begins.
await troupe.send('rally', { author: ANA, content: 'Hello.', to: ['left', 'right'] });
await troupe.idle();
const before = { taken, jobs: await jobs(), head: (await troupe.events('rally')).head };
await troupe.send('rally', { author: ANA, content: rallyStart, to: ['left'] });
await troupe.idle();
const { events } = await troupe.events('rally', { after: before.head, limit: 5_000 });
const turns = events.filter(({ kind }) => kind === 'turn.done').length;
if (turns !== RALLY_TURNS) throw new Error(`${turns} turns instead of ${RALLY_TURNS}`);
report({
  jobsPerHop: ((await jobs()) - before.jobs) / turns,
  takenPerHop: (taken - before.taken) / turns,
});
