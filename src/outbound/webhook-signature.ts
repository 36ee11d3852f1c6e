import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';

/** A webhook's secret, made of the store's: the same in every process, and never stored. */
export function webhookSecret(storeSecret: string | Uint8Array, id: string, generation: number): string {
  const key = createHmac('sha256', storeSecret).update(`troupe webhook ${id} ${generation}`).digest();
  return `${PREFIX}${key.toString('base64')}`;
}

/**
 * Headers of the Standard Webhooks scheme: one signature per secret, over id, time and body, so that none of them can be
 * changed or sent again later.
 */
export function signWebhook(
  { id, at, body }: { id: string; at: number; body: string },
  secrets: readonly string[],
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}
