import type { Command } from 'commander';

/** `troupe eval …`; `client` adds the options of commands that need a troupe. */
export function addEvalCommands(program: Command, client: (command: Command) => Command): void {
  const evals = program
    .command('eval', { hidden: true })
    .description('tests of conversations: record, compare')
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
}
