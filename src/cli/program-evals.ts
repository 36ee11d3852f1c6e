import type { Command } from 'commander';
import { wholeNumber } from './option-values.ts';

/** `troupe eval …`; `client` adds the options of commands that need a troupe. */
export function addEvalCommands(program: Command, client: (command: Command) => Command): void {
  const evals = program
    .command('eval', { hidden: true })
    .description('tests of conversations: record, compare, show')
    .helpCommand(false);

  client(evals.command('record'))
    .description('write a test that plays a conversation again, and its recording')
    .argument('<conversation>')
    .option('--out <file>', 'name of the test, without .test.ts (default: the conversation)')
    .action(async (conversation, options) =>
      (await import('./commands/eval.ts')).evalRecord(conversation, options),
    );

  evals
    .command('compare')
    .description('compare scores with a baseline; exit code 1 if one is worse')
    .argument('<before>', 'scores.json of the baseline')
    .argument('<after>', 'scores.json')
    .option('--json', 'machine-readable output')
    .action(async (before, after, options) =>
      (await import('./commands/eval-compare.ts')).evalCompare(before, after, options),
    );

  evals
    .command('show')
    .description('show scores and the conversations behind them, beside a baseline')
    .argument('<folder>', 'folder with scores.json, and runs that were kept')
    .argument('[baseline]', 'folder of the baseline')
    .option('--port <n>', 'port, or the first free one after it', wholeNumber(0, 65_535), 4600)
    .option('--open', 'open the page in a browser')
    .option('--json', 'print one JSON line when ready')
    .action(async (folder, baseline, options) =>
      (await import('./commands/eval-show.ts')).evalShow(folder, baseline, options),
    );
}
