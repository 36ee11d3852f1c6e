import type { Command } from 'commander';

/** `troupe nostr …` */
export function addNostrCommands(program: Command, client: (command: Command) => Command): void {
  const nostr = program
    .command('nostr')
    .description('the keys of agents on Nostr, and its relays')
    .helpCommand(false);
  const keys = nostr.command('keys').description('the keys that agents sign with').helpCommand(false);

  stored(keys.command('create'))
    .description('make a key for an agent')
    .argument('<agent>')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).createKey(agent, options));

  stored(keys.command('import'))
    .description('take a key over: nsec1… or hex, from stdin')
    .argument('<agent>')
    .option('--env <name>', 'or from this variable')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).importKey(agent, options));

  stored(keys.command('ls'))
    .description('which agents have keys')
    .action(async (options) => (await import('./commands/nostr.ts')).listKeys(options));

  stored(keys.command('export'))
    .description('print the secret key of an agent')
    .argument('<agent>')
    .option('--show-secret', 'it is meant')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).exportKey(agent, options));

  stored(keys.command('rm'))
    .description('forget the key of an agent, for ever')
    .argument('<agent>')
    .option('--yes', 'it is meant')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).removeKey(agent, options));

  client(nostr.command('status'))
    .description('how it stands with the relays of a running server')
    .action(async (options) => (await import('./commands/nostr.ts')).showStatus(options));

  nostr
    .command('test')
    .description('connect to a relay, read from it and write to it')
    .argument('<relay>', 'its URL, as wss://relay.example')
    .option('--json', 'machine-readable output')
    .action(async (relay, options) => (await import('./commands/nostr.ts')).testRelay(relay, options));
}

/** Options of the commands that open the store by themselves. */
function stored(command: Command): Command {
  return command
    .option('--data <dir>', 'data directory (default: .troupe)')
    .option('--mongodb <url>', 'of many machines: where the log is')
    .option('--redis <url>', 'and where wakes are')
    .option('--agents <file>', 'agents file (default: ./agents.ts, .js or .json)')
    .option('--json', 'machine-readable output');
}
