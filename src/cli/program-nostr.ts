import type { Command } from 'commander';

/** `troupe nostr …` */
export function addNostrCommands(program: Command, client: (command: Command) => Command): void {
  const nostr = program
    .command('nostr')
    .description('manage agent keys for Nostr, and check relays')
    .helpCommand(false);
  const keys = nostr.command('keys').description('manage the keys that agents sign with').helpCommand(false);

  stored(keys.command('create'))
    .description('create a key for an agent')
    .argument('<agent>')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).createKey(agent, options));

  stored(keys.command('import'))
    .description('import a key, nsec1… or hex, from stdin')
    .argument('<agent>')
    .option('--env <name>', 'read the key from this environment variable instead')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).importKey(agent, options));

  stored(keys.command('ls'))
    .description('list the agents that have keys')
    .action(async (options) => (await import('./commands/nostr.ts')).listKeys(options));

  stored(keys.command('export'))
    .description('print the secret key of an agent')
    .argument('<agent>')
    .option('--show-secret', 'confirm that the secret is printed')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).exportKey(agent, options));

  stored(keys.command('rm'))
    .description('remove the key of an agent permanently')
    .argument('<agent>')
    .option('--yes', 'confirm the removal')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).removeKey(agent, options));

  client(nostr.command('status'))
    .description('show the state of the relays of a running server')
    .action(async (options) => (await import('./commands/nostr.ts')).showStatus(options));

  nostr
    .command('test')
    .description('connect to a relay, read from it and write to it')
    .argument('<relay>', 'its URL, such as wss://relay.example')
    .option('--json', 'machine-readable output')
    .action(async (relay, options) => (await import('./commands/nostr.ts')).testRelay(relay, options));
}

/** Options of the commands that open the store by themselves. */
function stored(command: Command): Command {
  return command
    .option('--data <dir>', 'data directory (default: .troupe)')
    .option('--mongodb <url>', 'with several machines: database of the log')
    .option('--postgres <url>', 'the same in PostgreSQL')
    .option('--redis <url>', 'with several machines: server of the queue')
    .option('--agents <file>', 'agents file (default: ./agents.ts, .js, .json, .yaml)')
    .option('--json', 'machine-readable output');
}
