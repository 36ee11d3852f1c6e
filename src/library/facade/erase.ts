import { TroupeError } from '../../base/errors.ts';
import { treeToDelete } from '../../actors/conversations/delete-conversation.ts';
import { fixedTexts, forgetStoredTexts } from '../../actors/turn/baseline.ts';
import { erasePerson } from '../../actors/erasure/erase-person.ts';
import type { Erased } from '../../actors/erasure/erase-conversations.ts';
import type { OnRead } from '../../actors/erasure/survey.ts';
import { type Author, SYSTEM_AUTHOR, type TenantId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { ErasureReceipt, ErasureRequest, ErasureSubject } from '../troupe.ts';
import { findConversation, type TenantContext } from './tenant-context.ts';

/** Copies that a store cannot erase. */
const OUTSIDE = [
  'what was sent to the vendors of models: their own terms say how long they keep it',
  'what was delivered before: webhooks, Nostr relays, answers of doors, pages that are open',
  'backups of the store, and exports made before',
  'logs and traces of processes and tools, and what tools have written elsewhere',
] as const;

/** Erases what a person said, conversations, or a tenant. Records what was done, without the words. */
export async function erase(context: TenantContext, request: ErasureRequest): Promise<ErasureReceipt> {
  const { tenant } = context;
  const { store, clock, random } = context.parts.deps;
  const of = subjectOf(request, tenant);
  const id = clock.now().toString(36) + Math.floor(random() * 36 ** 6).toString(36);
  let read = 0;
  const erased = await eraseSubject(context, of, {
    id,
    by: request.by ?? SYSTEM_AUTHOR,
    onRead: (conversation) => request.onProgress?.({ conversation, read: (read += 1) }),
  });
  const remains = await store.scrub();
  const receipt = { id, tenant, at: clock.now(), ...of, ...erased, remains, outside: [...OUTSIDE] };
  await store.compareAndSet(tenant, `erasure/${id}`, null, JSON.stringify(receipt));
  return receipt;
}

function subjectOf({ person, conversation, tenant }: ErasureRequest, own: TenantId): ErasureSubject {
  const given = [person, conversation, tenant].filter((each) => each !== undefined);
  if (given.length !== 1)
    throw new TroupeError('event_invalid', 'give one of person, conversation and tenant', { path: 'person' });
  if (person !== undefined) return { person };
  if (conversation !== undefined) return { conversation };
  if (tenant === own) return { wholeTenant: true };
  const message = `"${String(tenant)}" is not this tenant: its id is "${own}", and is given to confirm that all of it is meant`;
  throw new TroupeError('event_invalid', message, { path: 'tenant' });
}

async function eraseSubject(
  context: TenantContext,
  subject: ErasureSubject,
  { id, by, onRead }: { id: string; by: Author; onRead: OnRead },
): Promise<Erased> {
  const { parts, conversations, tenant } = context;
  const { deps } = parts;
  const forget = (log: ConversationKey) => {
    conversations.participantsCache.forget(log);
    deps.forTools?.forget(log);
    forgetStoredTexts(deps.store);
  };
  const erasing = { ...deps, forget, spared: fixedTexts(deps.agents) };
  if ('person' in subject) {
    const { person } = subject;
    const erased = await erasePerson(erasing, { tenant, person, id, by }, onRead);
    await parts.profilesOf(tenant).remove(person);
    return erased;
  }
  const { eraseConversations, eraseTenant } = await import('../../actors/erasure/erase-conversations.ts');
  if ('wholeTenant' in subject) return eraseTenant(erasing, tenant, onRead);
  const root = await findConversation(context, subject.conversation);
  const treeOf = (each: ConversationKey) => treeToDelete(deps, each);
  return eraseConversations({ ...erasing, treeOf }, tenant, [root.conversation], onRead);
}
