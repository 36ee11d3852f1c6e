import type { WebhookKind } from '../../library/integrations/webhook.ts';
import type { IssuedWebhook, WebhookInfo } from '../../library/integrations/webhook-book.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { clip, count, paint, print, printable, printHint, printJson, table } from '../render/output.ts';

interface WebhooksOptions extends ClientOptions {
  tenant?: string;
}

interface CreateOptions extends WebhooksOptions {
  on: WebhookKind[];
  conversations?: string[];
  name?: string;
}

const MAX_REASON = 80;

/** Creates a webhook and shows its secret. */
export async function webhooksCreate(url: string, options: CreateOptions): Promise<void> {
  const { on, conversations, name, tenant } = options;
  const asked = { url, on, ...(conversations && { conversations }), ...(name !== undefined && { name }) };
  const create = async ({ webhooks }: Client) => show(await webhooks.create(asked, tenant), options);
  await withClient(options, create, true);
}

export async function webhooksRotate(id: string, options: WebhooksOptions): Promise<void> {
  await withClient(options, async ({ webhooks }) => show(await webhooks.rotate(id, options.tenant), options));
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

function show({ webhook, secret }: IssuedWebhook, { json }: ClientOptions): void {
  if (json) return printJson({ webhook, secret });
  print(secret);
  printHint(`This secret signs the deliveries of webhook ${webhook.id}. Save it now: it is not shown again.`);
}

function rowOf(webhook: WebhookInfo): string[] {
  const { id, on, conversations, url, name } = webhook;
  const told = name === undefined ? printable(url) : `${printable(name)}: ${printable(url)}`;
  return [id, on.join(','), conversations?.join(',') ?? 'all', told, participants(webhook)];
}

function participants({ disabledAt, reason = '', status }: WebhookInfo): string {
  const refused = status.refused > 0 ? `, ${status.refused} refused` : '';
  if (disabledAt !== undefined) return paint('red', `disabled: ${clip(reason, MAX_REASON)}`);
  if (status.failingSince === null) return `${count(status.delivered, 'event')} sent${refused}`;
  const since = new Date(status.failingSince).toISOString().slice(0, 16).replace('T', ' ');
  return paint('yellow', `failing since ${since}${refused}: ${clip(status.lastError ?? '', MAX_REASON)}`);
}

/** Opens a client with the agents file, if there is one: it restricts the URLs of webhooks. */
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
