import { hash } from 'node:crypto';
import type { EventRow, NewEventRow } from './driver.ts';

/**
 * Each row of an event holds two hashes. `hash` covers its content. `chain` covers the row's id, place, time, token count
 * and `hash`, and the chain value of the event before it.
 *  H1  Both are computed when the row is appended and never change. Readers only compare.
 *  H2  The chain value of an event follows from that of the event with the seq before it. A conversation's first event
 *      continues the name of its log, and so does an event after one without a chain value: it was written by a version
 *      that made none.
 *  H3  Neither is secret. They reveal damage and edits; a writer of the database who computes them anew is not found.
 */
type Content = Pick<EventRow, 'kind' | 'to' | 'turn' | 'data'>;

/**
 * Hash of the content. Equal hashes mean a repeated append. With different hashes the append may still be a repetition
 * whose keys have another order: `isSamePayload` decides.
 */
export function payloadHash({ kind, to, turn, data }: Content): string {
  return hash('sha256', JSON.stringify([kind, to, turn]) + data, 'base64url');
}

/** Whether the content is the one that was appended. Id, time and token count are covered by the chain alone. */
export function isIntact(row: Content & Pick<EventRow, 'hash'>): boolean {
  return payloadHash(row) === row.hash;
}

/** The chain value of a row at `seq`. `before`: that of its predecessor; null if there is none. */
export function chainValue(row: NewEventRow, seq: number, before: string | null): string {
  const { tenant, conversation, id, at, tokens } = row;
  const link = JSON.stringify([before ?? `${tenant}/${conversation}`, seq, id, at, tokens, row.hash]);
  return hash('sha256', link, 'base64url');
}

/** Rows at consecutive seqs, the first after the event at `head`. */
export function chainRows(
  rows: readonly NewEventRow[],
  head: { seq: number; chain: string | null },
): EventRow[] {
  let before = head.chain;
  return rows.map((row, index) => {
    const seq = head.seq + 1 + index;
    before = chainValue(row, seq, before);
    return { ...row, seq, chain: before };
  });
}
