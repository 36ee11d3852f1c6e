import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { Author, DEFAULT_TENANT } from '../../events/index.ts';
import type { IssuedKey, KeyInfo, Scope } from '../../library/access/index.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { paint, print, printable, printHint, printJson, table } from '../render/output.ts';

interface KeysOptions extends ClientOptions {
  tenant?: string;
}

interface CreateOptions extends KeysOptions {
  scopes: Scope[];
  /** `user:ana:Ana` */
  author?: string;
  conversations?: string[];
  /** Milliseconds from now. */
  expires?: number;
}

/** Creates a key and shows its secret. */
export async function keysCreate(name: string, options: CreateOptions): Promise<void> {
  const { scopes, author, conversations, expires, tenant } = options;
  await using client = disposable(await connect(options, { needs: 'data', mayCreate: true }));
  const issued = await client.keys.create(
    {
      name,
      scopes,
      ...(author !== undefined && { author: readAuthor(author) }),
      ...(conversations && { conversations }),
      ...(expires !== undefined && { expiresAt: systemClock.now() + expires }),
    },
    tenant,
  );
  show(issued, options);
}

export async function keysRotate(id: string, options: KeysOptions & { grace?: number }): Promise<void> {
  const { grace: graceMs = 0, tenant } = options;
  await using client = disposable(await connect(options, { needs: 'data' }));
  show(await client.keys.rotate(id, { graceMs }, tenant), options);
}

export async function keysRevoke(id: string, options: KeysOptions): Promise<void> {
  await using client = disposable(await connect(options, { needs: 'data' }));
  const key = await client.keys.revoke(id, options.tenant);
  const made = await madeBy(client, id, options.tenant);
  const reach = key.tenant === DEFAULT_TENANT && key.scopes.includes('admin') ? 'all tenants' : 'its tenant';
  if (options.json) return printJson({ key, ...made, lookedIn: key.tenant, reach });
  print(`${key.id} (${printable(key.name)}) is revoked`);
  for (const [what, ids] of Object.entries(made))
    if (ids.length > 0) print(`${what} it created are still active: ${ids.join(' ')}`);
  if (reach === 'its tenant') return;
  // Tenants cannot be listed: a tenant that has only keys is known only through those keys.
  const look = `"troupe keys ls --tenant ID --json" and "troupe webhooks ls --tenant ID --json"`;
  print(
    paint('yellow', `it could create keys and webhooks in every tenant; only ${key.tenant} was checked.`),
  );
  print(`In other tenants, look for "createdBy":"key:${key.id}" with ${look}`);
}

/** Valid keys and enabled webhooks that a key created in one tenant. */
async function madeBy(client: Client, id: string, tenant: string | undefined) {
  const isIts = ({ createdBy }: { createdBy?: string | null | undefined }) => createdBy === `key:${id}`;
  const [keys, webhooks] = [await client.keys.list(tenant), await client.webhooks.list(tenant)];
  return {
    keys: keys.filter((key) => isIts(key) && key.revokedAt === null).map((key) => key.id),
    webhooks: webhooks.filter((each) => isIts(each) && each.disabledAt === undefined).map((each) => each.id),
  };
}

export async function keysList(options: KeysOptions): Promise<void> {
  await using client = disposable(await connect(options, { needs: 'data' }));
  const keys = await client.keys.list(options.tenant);
  if (options.json) return printJson({ keys });
  if (keys.length === 0) return print('there are no keys; create one with "troupe keys create"');
  const rows = keys.map((key) => [
    key.id,
    printable(key.name),
    key.scopes.join(','),
    participants(key),
    reach(key),
  ]);
  print(table([['id', 'name', 'scopes', '', 'speaks as, sees'].map((head) => paint('dim', head)), ...rows]));
}

function show({ key, secret }: IssuedKey, { json }: ClientOptions): void {
  if (json) return printJson({ key, secret });
  print(secret);
  printHint(`This is key ${key.id} of tenant ${key.tenant}. Save it now: it is not shown again.`);
}

function participants({ revokedAt, expiresAt }: KeyInfo): string {
  if (revokedAt !== null) return paint('red', 'revoked');
  if (expiresAt === null) return 'open';
  const at = new Date(expiresAt).toISOString().slice(0, 16).replace('T', ' ');
  return systemClock.now() < expiresAt ? `until ${at}` : paint('red', 'expired');
}

function reach({ author, conversations }: KeyInfo): string {
  const who = author ? printable(`${author.kind} ${author.id}`) : 'people';
  return `${who}, ${conversations?.join(' ') ?? 'all'}`;
}

/** `KIND:ID` or `KIND:ID:NAME`. Throws `event_invalid`. */
function readAuthor(text: string): Author {
  const [kind, id = '', ...name] = text.split(':');
  const author = Author.safeParse({ kind, id, name: name.join(':') || id });
  if (author.success) return author.data;
  const message =
    '--author must be KIND:ID or KIND:ID:NAME, such as user:ana:Ana; kinds are user, agent and system';
  throw new TroupeError('event_invalid', message, { path: 'author' });
}

function disposable<C extends { close(): Promise<void> }>(client: C): C & AsyncDisposable {
  return { ...client, [Symbol.asyncDispose]: () => client.close() };
}
