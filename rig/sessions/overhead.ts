import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { installClis, PEERS_ENV } from '../../test/services/clis.ts';
import type { Cli } from './fake-vendor.ts';
import { timeTalks, type TurnTimes } from './time-talks.ts';

/**
 * `npm run rig:overhead -- [--turns 30] [--cli claude-code
 * codex] [--json]`: Troupe's overhead in a warm turn of the real programs, with fake APIs that answer at once.
 */
const TARGETS_MS: Readonly<Record<Cli, number>> = { 'claude-code': 40, codex: 60 };

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '30' },
    cli: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const turns = Number(values.turns);
const known = Object.keys(TARGETS_MS) as Cli[];
const clis = known.filter((cli) => values.cli === undefined || values.cli === cli);
if (clis.length === 0) throw new Error(`--cli is one of ${known.join(', ')}, not ${values.cli}`);
if (!Number.isInteger(turns) || turns < 1) throw new Error(`--turns is a whole number, not ${values.turns}`);
const installed = await installClis();
if ('missing' in installed) throw new Error(`the programs are missing: ${installed.missing}`);
process.env[PEERS_ENV] = installed.home;
// On a busy machine the figures say more about the machine.
const load = round(loadavg()[0] ?? 0);
if (!values.json) console.log(`${availableParallelism()} cores, load ${load} at the start\n`);

for (const cli of clis) {
  const { bare, adapter, troupe } = await timeTalks(cli, turns);
  const overhead = troupe.p50 - bare.p50;
  const targetMs = TARGETS_MS[cli];
  const verdict = overhead <= targetMs ? 'within' : 'over';
  if (values.json) {
    const report = { cli, turns, load, bare, adapter, troupe, overhead, targetMs, verdict };
    console.log(
      JSON.stringify(report, (_, value: unknown) => (typeof value === 'number' ? round(value) : value)),
    );
    continue;
  }
  console.log(`${cli}: ${turns} warm turns each, ms      median     p90  until the API is asked  after`);
  line('alone', bare);
  line('with the adapter', adapter);
  line('through Troupe', troupe);
  const parts = `${round(adapter.p50 - bare.p50)} ms in the adapter, ${round(troupe.p50 - adapter.p50)} ms in the rest`;
  console.log(`${cli}: Troupe adds ${round(overhead)} ms (${parts}): ${verdict} the ${targetMs} ms\n`);
}

function line(name: string, { p50, p90, untilAsked, afterAsked }: TurnTimes): void {
  const columns = [p50, p90, untilAsked, afterAsked].map((ms, i) =>
    ms.toFixed(1).padStart([8, 8, 24, 7][i] ?? 8),
  );
  console.log(`  ${name.padEnd(36)}${columns.join('')}`);
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
