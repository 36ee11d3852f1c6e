import { type Command, InvalidArgumentError } from 'commander';

/** As `TenantId`, whose schema would be loaded for `--help`, too. */
const TENANT = /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/;

export function ofTenant(command: Command): Command {
  return command.option('--tenant <id>', 'of this tenant (default: your own)', tenantId);
}

function tenantId(text: string): string {
  if (TENANT.test(text)) return text;
  throw new InvalidArgumentError(
    'It is 1 to 128 of A-Z a-z 0-9 . _ @ : - and starts with a letter or digit.',
  );
}
