/** The body of an event without what the clock of its process said: another process has another one. */
export function withoutTimes(body: object): Record<string, unknown> {
  const { ran: _, times: __, ...rest } = body as Record<string, unknown>;
  return rest;
}
