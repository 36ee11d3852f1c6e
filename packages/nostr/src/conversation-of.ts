/**
 * What a conversation from Nostr is named after: the id of the first event of its thread, or a hash of what that is about.
 * Null for any other conversation, threads of tasks and forks among them: what is said there stays there.
 */
export function rootOf(conversation: string, prefix: string): string | null {
  if (!conversation.startsWith(prefix)) return null;
  const root = conversation.slice(prefix.length);
  return /^(?:[0-9a-f]{32}|[0-9a-f]{64})$/.test(root) ? root : null;
}
