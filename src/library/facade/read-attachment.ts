import type { Event } from '../../events/index.ts';
import type { ReadAttachment } from '../troupe.ts';
import type { Store } from '../../store/store.ts';

/** The bytes of an attachment of a message. Null: it has none at this index. */
export async function readAttachment(
  store: Pick<Store, 'readBody'>,
  event: Event,
  index: number,
): Promise<ReadAttachment | null> {
  const { kind, body, tenant } = event;
  const given = kind === 'message' || kind === 'notice' ? body.attachments?.[index] : undefined;
  if (!given) return null;
  const { mediaType, name } = given;
  const head = { mediaType, ...(name !== undefined && { name }) };
  if (given.type === 'text') return { ...head, data: Buffer.from(given.text) };
  const base64 = await store.readBody(tenant, given.hash);
  return base64 === null ? null : { ...head, data: Buffer.from(base64, 'base64') };
}
