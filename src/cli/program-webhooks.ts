import type { Command } from 'commander';
import { ofTenant } from './tenant-option.ts';

/** `troupe webhooks …`; `client` adds the options of the commands that need a troupe. */
export function addWebhookCommands(program: Command, client: (command: Command) => Command): void {
  const webhooks = program
    .command('webhooks')
    .description('where events are sent, signed')
    .helpCommand(false);
  const add = (command: Command) => ofTenant(client(command));

  add(webhooks.command('create'))
    .description('send events of some kinds to a URL; prints the secret that they are signed with')
    .argument('<url>')
    .requiredOption('--on <kinds>', 'kinds of events, as message,approval.requested; "*": all', list)
    .option('--conversations <ids>', 'only of these; "plan*": all that begin so', list)
    .option('--name <name>', 'for people')
    .action(async (url, options) => (await import('./webhooks.ts')).webhooksCreate(url, options));

  add(webhooks.command('ls'))
    .description('webhooks, and how deliveries go')
    .action(async (options) => (await import('./webhooks.ts')).webhooksList(options));

  add(webhooks.command('rm'))
    .description('send it nothing more')
    .argument('<id>')
    .action(async (id, options) => (await import('./webhooks.ts')).webhooksRemove(id, options));

  add(webhooks.command('test'))
    .description('send a ping now; one that was disabled and takes it is enabled again')
    .argument('<id>')
    .action(async (id, options) => (await import('./webhooks.ts')).webhooksTest(id, options));

  add(webhooks.command('rotate'))
    .description('a new secret; the old one signs too for 24 hours')
    .argument('<id>')
    .action(async (id, options) => (await import('./webhooks.ts')).webhooksRotate(id, options));
}

function list(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
}
