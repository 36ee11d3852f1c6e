import { parseArgs } from 'node:util';
import { installClis, PEERS_ENV } from '../../test/services/clis.ts';
import type { Cli } from './fake-vendor.ts';
import { playRun, type RunFigure, type RunResult } from './play-run.ts';
import { playFifty } from './play-fifty.ts';

/**
 * `npm run rig:sessions -- [--runs 200] [--seed N] [--cli claude-code
 * codex] [--json]`: runs the real programs with fake APIs that record every request, in random interleavings of
 * turns, stops, failures, kills, restarts, other agents' messages and compactions. Then compares the cost of 50 turns
 * with that of whole prompts. Exit code 1 on a violation.
 */
const CLIS: readonly Cli[] = ['claude-code', 'codex'];

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    cli: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const installed = await installClis();
if ('missing' in installed) {
  console.error(`the programs are missing: ${installed.missing}`);
  process.exit(1);
}
process.env[PEERS_ENV] = installed.home;
const clis = CLIS.filter((cli) => values.cli === undefined || values.cli === cli);
const seed = Number(values.seed);
const each = Math.ceil(Number(values.runs) / clis.length);
let violations = 0;

for (const cli of clis) {
  const began = performance.now();
  const total: Partial<Record<RunFigure, number>> = {};
  const failed: RunResult[] = [];
  for (let run = 0; run < each; run++) {
    const result = await playRun(cli, seed + run);
    for (const [name, count] of Object.entries(result.figures))
      total[name as RunFigure] = (total[name as RunFigure] ?? 0) + count;
    if (result.problems.length > 0) {
      failed.push(result);
      for (const problem of result.problems.slice(0, 8))
        console.error(`${cli} seed ${result.seed}: ${problem}`);
      console.error(`repeat: npm run rig:sessions -- --cli ${cli} --runs 1 --seed ${result.seed}`);
    }
    if ((run + 1) % 10 === 0) console.error(`${cli}: ${run + 1}/${each} runs`);
  }
  violations += failed.length;
  const fifty = await playFifty(cli);
  const seconds = (performance.now() - began) / 1000;
  const report = { cli, runs: each, seed, violations: failed.length, ...total, fifty, seconds };
  if (values.json) console.log(JSON.stringify(report));
  else {
    const figures = Object.entries(total)
      .filter(([name]) => !name.endsWith('Tokens'))
      .map(([name, count]) => `${count} ${name}`)
      .join(', ');
    console.log(
      `${cli}: ${each} runs from seed ${seed}, ${figures}, ${failed.length} violations, ${seconds.toFixed(0)} s`,
    );
    console.log(
      `${cli}: 50 turns sent ${fifty.sent} characters of input, ${fifty.percent.toFixed(1)} % of the ${fifty.whole} that sending everything each turn takes; median turn ${fifty.medianMs.toFixed(0)} ms`,
    );
  }
}
process.exitCode = violations > 0 ? 1 : 0;
