import * as z from 'zod';

/** Who said it. The name is per event, because several people may speak through one bridge. */
export const Author = z.strictObject({
  kind: z.enum(['user', 'agent', 'system']),
  id: z.string().min(1).max(128),
  name: z.string().min(1).max(200),
});
export type Author = z.infer<typeof Author>;

export function agentAuthor(agent: { id: string; name: string }): Author {
  return { kind: 'agent', id: agent.id, name: agent.name };
}

export const SYSTEM_AUTHOR: Author = { kind: 'system', id: 'troupe', name: 'Troupe' };
