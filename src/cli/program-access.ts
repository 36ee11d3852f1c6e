import { type Command, InvalidArgumentError, Option } from 'commander';

const SCOPES = ['read', 'write', 'operate', 'admin'];
const UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MAX_GRACE_DAYS = 30;

/** `troupe keys …`; `client` adds the options of commands that need a troupe. */
export function addAccessCommands(program: Command, client: (command: Command) => Command): void {
  const keys = program
    .command('keys')
    .description('manage API keys: create, ls, rotate, revoke')
    .helpCommand(false);

  ofTenant(client(keys.command('create')))
    .description('create a key and show it once')
    .argument('<name>', 'its owner or purpose')
    .addOption(
      new Option('--scopes <list>', 'any of read, write, operate, admin')
        .argParser(scopes)
        .default(['read', 'write'], 'read,write'),
    )
    .option('--author <who>', 'the only author it may write as: KIND:ID or KIND:ID:NAME', author)
    .option(
      '--conversations <list>',
      "conversations it may see: ids, or prefixes with '*' (default: all)",
      list,
    )
    .option('--expires <time>', 'lifetime, such as 30d or 12h (default: unlimited)', lifetime)
    .action(async (name, options) => (await import('./commands/keys.ts')).keysCreate(name, options));

  ofTenant(client(keys.command('ls')))
    .description('list keys, without their secrets')
    .action(async (options) => (await import('./commands/keys.ts')).keysList(options));

  ofTenant(client(keys.command('rotate')))
    .description('give a key a new secret and show it once')
    .argument('<id>')
    .option('--grace <time>', 'how long the old secret stays valid, such as 1h (default: not at all)', grace)
    .action(async (id, options) => (await import('./commands/keys.ts')).keysRotate(id, options));

  ofTenant(client(keys.command('revoke')))
    .description('revoke a key permanently')
    .argument('<id>')
    .action(async (id, options) => (await import('./commands/keys.ts')).keysRevoke(id, options));
}

export function list(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
}

function scopes(text: string): string[] {
  const named = list(text);
  if (named.length > 0 && named.every((scope) => SCOPES.includes(scope))) return named;
  throw new InvalidArgumentError(`Scopes are ${SCOPES.join(', ')}, separated by commas.`);
}

function author(text: string): string {
  if (/^(?:user|agent|system):[^:]/.test(text)) return text;
  throw new InvalidArgumentError(
    'It must be KIND:ID or KIND:ID:NAME, such as user:ana:Ana; kinds are user, agent and system.',
  );
}

function lifetime(text: string): number {
  const ms = duration(text);
  if (ms > 0) return ms;
  throw new InvalidArgumentError('The key would never be valid.');
}

function grace(text: string): number {
  const ms = duration(text);
  if (ms <= MAX_GRACE_DAYS * 86_400_000) return ms;
  throw new InvalidArgumentError(`It must be at most ${MAX_GRACE_DAYS}d.`);
}

/** Parses a duration to milliseconds. */
function duration(text: string): number {
  const [, number, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (number === undefined || factor === undefined)
    throw new InvalidArgumentError('It must be a number with s, m, h or d, such as 30d.');
  return Number(number) * factor;
}

/** The pattern of `TenantId`, repeated here because loading its schema would slow down `--help`. */
const TENANT = /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/;

function ofTenant(command: Command): Command {
  return command.option('--tenant <id>', 'tenant to use (default: your own)', tenantId);
}

function tenantId(text: string): string {
  if (TENANT.test(text)) return text;
  throw new InvalidArgumentError(
    'It must be 1 to 128 of A-Z a-z 0-9 . _ @ : - and start with a letter or digit.',
  );
}

/** `troupe webhooks …`; `client` adds the options of the commands that need a troupe. */
export function addWebhookCommands(program: Command, client: (command: Command) => Command): void {
  const webhooks = program
    .command('webhooks')
    .description('send signed events to URLs: create, ls, test, rotate, rm')
    .helpCommand(false);
  const add = (command: Command) => ofTenant(client(command));

  add(webhooks.command('create'))
    .description('send events of chosen kinds to a URL, and print the signing secret')
    .argument('<url>')
    .requiredOption('--on <kinds>', 'event kinds, such as message,approval.requested; "*": all', list)
    .option('--conversations <ids>', 'only these conversations; "plan*" matches a prefix', list)
    .option('--name <name>', 'display name')
    .action(async (url, options) => (await import('./commands/webhooks.ts')).webhooksCreate(url, options));

  add(webhooks.command('ls'))
    .description('list webhooks and the state of their deliveries')
    .action(async (options) => (await import('./commands/webhooks.ts')).webhooksList(options));

  add(webhooks.command('rm'))
    .description('remove a webhook')
    .argument('<id>')
    .action(async (id, options) => (await import('./commands/webhooks.ts')).webhooksRemove(id, options));

  add(webhooks.command('test'))
    .description('send a ping now; a disabled webhook that accepts it is enabled again')
    .argument('<id>')
    .action(async (id, options) => (await import('./commands/webhooks.ts')).webhooksTest(id, options));

  add(webhooks.command('rotate'))
    .description('create a new secret; the old one also signs for 24 hours')
    .argument('<id>')
    .action(async (id, options) => (await import('./commands/webhooks.ts')).webhooksRotate(id, options));
}
