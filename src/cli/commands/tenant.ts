import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { Author, DEFAULT_TENANT, type PersonProfile } from '../../events/index.ts';
import type { IssuedKey, KeyInfo, Scope } from '../../library/access/index.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { paint, print, printable, printHint, printJson, table, clip, count } from '../render/output.ts';
import type { WebhookKind } from '../../library/integrations/webhook.ts';
import type { IssuedWebhook, WebhookInfo } from '../../library/integrations/webhook-repository.ts';

interface KeysOptions extends ClientOptions {
  tenant?: string;
}

interface CreateKeyOptions extends KeysOptions {
  scopes: Scope[];
  /** As `user:ana:Ana`. */
  author?: string;
  conversations?: string[];
  /** Milliseconds from now. */
  expires?: number;
}

/** Creates a key and shows its secret. */
export async function keysCreate(name: string, options: CreateKeyOptions): Promise<void> {
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
  showKey(issued, options);
}

export async function keysRotate(id: string, options: KeysOptions & { grace?: number }): Promise<void> {
  const { grace: graceMs = 0, tenant } = options;
  await using client = disposable(await connect(options, { needs: 'data' }));
  showKey(await client.keys.rotate(id, { graceMs }, tenant), options);
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
  // Tenants cannot be listed, so a tenant that has only keys is known only through those keys.
  const look = `"troupe keys ls --tenant ID --json" and "troupe webhooks ls --tenant ID --json"`;
  print(
    paint('yellow', `it could create keys and webhooks in every tenant; only ${key.tenant} was checked.`),
  );
  print(`In other tenants, look for "createdBy":"key:${key.id}" with ${look}`);
}

/** Valid keys and enabled webhooks that a key has created in one tenant. */
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
    keyStand(key),
    reach(key),
  ]);
  print(table([['id', 'name', 'scopes', '', 'speaks as, sees'].map((head) => paint('dim', head)), ...rows]));
}

function showKey({ key, secret }: IssuedKey, { json }: ClientOptions): void {
  if (json) return printJson({ key, secret });
  print(secret);
  printHint(`This is key ${key.id} of tenant ${key.tenant}. Save it now: it is not shown again.`);
}

function keyStand({ revokedAt, expiresAt, previousUntil }: KeyInfo): string {
  const now = systemClock.now();
  if (revokedAt !== null) return paint('red', 'revoked');
  if (expiresAt !== null && expiresAt <= now) return paint('red', 'expired');
  const stand = expiresAt === null ? 'open' : `until ${minuteOf(expiresAt)}`;
  const hasGrace = previousUntil !== null && previousUntil > now;
  return hasGrace ? `${stand}, old secret until ${minuteOf(previousUntil)}` : stand;
}

function minuteOf(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}

function reach({ author, conversations }: KeyInfo): string {
  const who = author ? printable(`${author.kind} ${author.id}`) : 'people';
  return `${who}, ${conversations?.join(' ') ?? 'all'}`;
}

/** Parses `KIND:ID` or `KIND:ID:NAME`. Throws `event_invalid`. */
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

interface WebhooksOptions extends ClientOptions {
  tenant?: string;
}

interface CreateWebhookOptions extends WebhooksOptions {
  on: WebhookKind[];
  conversations?: string[];
  name?: string;
}

const MAX_REASON = 80;

/** Creates a webhook and shows its secret. */
export async function webhooksCreate(url: string, options: CreateWebhookOptions): Promise<void> {
  const { on, conversations, name, tenant } = options;
  const asked = { url, on, ...(conversations && { conversations }), ...(name !== undefined && { name }) };
  const create = async ({ webhooks }: Client) => showWebhook(await webhooks.create(asked, tenant), options);
  await withClient(options, create, true);
}

export async function webhooksRotate(id: string, options: WebhooksOptions): Promise<void> {
  await withClient(options, async ({ webhooks }) =>
    showWebhook(await webhooks.rotate(id, options.tenant), options),
  );
}

export async function webhooksList(options: WebhooksOptions): Promise<void> {
  await withClient(options, async (client) => {
    const webhooks = await client.webhooks.list(options.tenant);
    if (options.json) return printJson({ webhooks });
    if (webhooks.length === 0)
      return print('there are no webhooks; create one with "troupe webhooks create"');
    const heads = ['id', 'on', 'conversations', 'url', ''].map((head) => paint('dim', head));
    print(table([heads, ...webhooks.map(rowOf)]));
  });
}

export async function webhooksRemove(id: string, options: WebhooksOptions): Promise<void> {
  await withClient(options, async ({ webhooks }) => {
    const webhook = await webhooks.remove(id, options.tenant);
    if (options.json) return printJson({ webhook });
    print(`${webhook.id} is removed: nothing more is sent to ${printable(webhook.url)}`);
  });
}

/** Sends a ping; the exit code is 1 if the receiver does not accept it. */
export async function webhooksTest(id: string, options: WebhooksOptions): Promise<void> {
  await withClient(options, async ({ webhooks }) => {
    const { ok, status, ms, error } = await webhooks.test(id, options.tenant);
    if (!ok) process.exitCode = 1;
    if (options.json) return printJson({ ok, status, ms, ...(error !== undefined && { error }) });
    print(ok ? `accepted: ${status}, ${ms} ms` : paint('red', `not accepted: ${printable(error ?? '')}`));
  });
}

function showWebhook({ webhook, secret }: IssuedWebhook, { json }: ClientOptions): void {
  if (json) return printJson({ webhook, secret });
  print(secret);
  printHint(`This secret signs the deliveries of webhook ${webhook.id}. Save it now: it is not shown again.`);
}

function rowOf(webhook: WebhookInfo): string[] {
  const { id, on, conversations, url, name } = webhook;
  const told = name === undefined ? printable(url) : `${printable(name)}: ${printable(url)}`;
  return [id, on.join(','), conversations?.join(',') ?? 'all', told, webhookStand(webhook)];
}

function webhookStand({ disabledAt, reason = '', status }: WebhookInfo): string {
  const refused = status.refused > 0 ? `, ${status.refused} refused` : '';
  if (disabledAt !== undefined) return paint('red', `disabled: ${clip(reason, MAX_REASON)}`);
  if (status.failingSince === null) return `${count(status.delivered, 'event')} sent${refused}`;
  const since = new Date(status.failingSince).toISOString().slice(0, 16).replace('T', ' ');
  return paint('yellow', `failing since ${since}${refused}: ${clip(status.lastError ?? '', MAX_REASON)}`);
}

/** Opens a client with the agents file, if there is one, because it restricts the URLs of webhooks. */
async function withClient(
  options: ClientOptions,
  act: (client: Client) => Promise<void>,
  mayCreate = false,
): Promise<void> {
  const client = await connect(options, { needs: 'names', mayCreate });
  try {
    await act(client);
  } finally {
    await client.close();
  }
}

interface PersonOptions extends ClientOptions, PersonProfile {
  forget?: boolean;
}

/** Shows what agents are told about a person, changes the named fields, or removes all of them. An empty value removes a field. */
export async function person(id: string, options: PersonOptions): Promise<void> {
  const { name, timeZone, preferences, forget } = options;
  const client = await connect(options, { needs: 'data', mayCreate: true });
  try {
    if (forget) {
      const removed = await client.people.remove(id);
      return options.json
        ? printJson({ removed })
        : print(removed ? `${id} is forgotten` : `nothing is known of ${id}`);
    }
    const given = Object.entries({ name, timeZone, preferences }).filter(([, value]) => value !== undefined);
    const before = await client.people.get(id);
    const merged = Object.entries({ ...before, ...Object.fromEntries(given) }).filter(
      ([, value]) => value !== '',
    );
    const profile = given.length === 0 ? before : await client.people.set(id, Object.fromEntries(merged));
    if (options.json) return printJson({ profile });
    const lines = Object.entries(profile ?? {}).map(
      ([field, value]) => `${field}: ${printable(String(value))}`,
    );
    print(lines.length > 0 ? lines.join('\n') : `nothing is known of ${id}`);
  } finally {
    await client.close();
  }
}
