/** What an error says, and what its cause says: `fetch failed` alone tells nobody what to do. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { message, name, cause } = thrown;
  return cause instanceof Error && cause.message !== ''
    ? `${message || name}: ${cause.message}`
    : message || name;
}
