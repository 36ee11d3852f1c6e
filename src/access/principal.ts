import * as z from 'zod';
import { type Author, DEFAULT_TENANT, type TenantId } from '../events/index.ts';
import { type Scope, SCOPES } from './scope.ts';

/** A caller, as far as it matters what it may do. */
export interface Principal {
  /** `key:<id>`, `jwt:<subject>`, `server-token`, `local`. */
  id: string;
  tenant: TenantId;
  scopes: readonly Scope[];
  /** Whose words it may bring; null: it speaks for people and says per event whose words they are. */
  author: Author | null;
  /** Conversations it may see and write: ids, or beginnings that end with `*`; null: all of its tenant. */
  conversations: readonly string[] | null;
}

/** Nobody is asked for a credential: a process on this machine, or an application that checks its callers itself. */
export const LOCAL: Principal = {
  id: 'local',
  tenant: DEFAULT_TENANT,
  scopes: SCOPES,
  author: null,
  conversations: null,
};
export const SERVER_TOKEN: Principal = { ...LOCAL, id: 'server-token' };

const MAX_PATTERNS = 64;
/** The id of a conversation, or the beginning of ids, which ends with `*`. */
export const ConversationPattern = z
  .string()
  .regex(
    /^(?:[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}\*?|\*)$/,
    "a conversation is an id, or the beginning of ids with '*' behind it",
  );
export const ConversationPatterns = z.array(ConversationPattern).max(MAX_PATTERNS);
