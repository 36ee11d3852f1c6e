import type { NewEventRow } from '../../src/store/driver.ts';

/** A row as `createStore` would encode it. */
export function eventRow(
  id: string,
  { tenant = 'acme', conversation = 'talk', at = 1000, to = [] as string[], content = id } = {},
): NewEventRow {
  const author = { kind: 'user', id: 'ada', name: 'Ada' };
  const data = JSON.stringify({ author, body: { content } });
  return {
    tenant,
    conversation,
    id,
    at,
    kind: 'message',
    to,
    hash: `h-${content}`,
    tokens: 1,
    turn: null,
    data,
  };
}
