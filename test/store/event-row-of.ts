import { ConversationId, TenantId } from '../../src/events/index.ts';
import { WHOLE } from '../../src/base/slices.ts';
import type { NewEventRow, StoreDriver } from '../../src/store/driver.ts';
import { payloadHash } from '../../src/store/event-row.ts';
import type { LogVerification } from '../../src/store/store.ts';
import { verifyLog } from '../../src/store/verify-log.ts';

/** A row as `createStore` would encode it. */
export function eventRow(
  id: string,
  { tenant = 'acme', conversation = 'talk', at = 1000, to = [] as string[], content = id } = {},
): NewEventRow {
  const author = { kind: 'user', id: 'ada', name: 'Ada' };
  const data = JSON.stringify({ author, body: { content } });
  const row = { tenant, conversation, id, at, kind: 'message', to, tokens: 1, turn: null, data };
  return { ...row, hash: payloadHash(row) };
}

/** What `verify` finds in a log of up to 10,000 events. */
export function verified(
  driver: StoreDriver,
  { tenant, conversation } = { tenant: 'acme', conversation: 'talk' },
): Promise<LogVerification> {
  const log = { tenant: TenantId.parse(tenant), conversation: ConversationId.parse(conversation) };
  return verifyLog({ driver, slices: WHOLE }, log, 0);
}
