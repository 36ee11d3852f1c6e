import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { problemsOf, runLoad } from '../../packages/nostr/test/load.ts';

/**
 * `npm run nostr:load`: signed events, a quarter of them forged, through relays in separate processes, with
 * duplicates, disorder, disconnects and an hour without the gateway. Exit code 1 if a valid event is not stored
 * exactly once, an agent is not woken exactly once for it, or a forged one is stored. `--events 10000 --seed 1`.
 */
const { values } = parseArgs({
  options: { events: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
});
const events = Number(values.events);
const seed = Number(values.seed);
if (!Number.isInteger(events) || events < 40) throw new Error('--events must be an integer of at least 40');

console.log(`Node ${process.version}, ${cpus().length} cores, ${events} events, seed ${seed}`);
const report = await runLoad({ events, seed, report: (line) => console.log(`  ${line}`) });
const problems = problemsOf(report);
const rate = (report.valid + report.forged + report.duplicates) / (report.ms / 1_000);

console.log(`valid             ${report.valid}, ${report.missed} of them while the gateway was away`);
console.log(`duplicates        ${report.duplicates}, disconnects ${report.disconnects}`);
console.log(`stored once       ${report.stored}; twice ${report.storedTwice}, lost ${report.lost}`);
console.log(`agents named      ${report.named}; woken once ${report.woken}, twice ${report.wokenTwice}`);
console.log(`forged            ${report.forged}; stored ${report.forgedStored}`);
console.log(`refused           ${JSON.stringify(report.rejected)}`);
console.log(
  `time              ${(report.ms / 1_000).toFixed(1)} s, ${rate.toFixed(0)} events/s including signing`,
);
for (const problem of problems) console.log(`FAILED: ${problem}`);
process.exit(problems.length > 0 ? 1 : 0);
