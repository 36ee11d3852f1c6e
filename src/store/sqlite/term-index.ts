import { MARKS, type TermCondition } from '../passages.ts';

/**
 * The full-text index `terms` has two kinds of rows: passages by their number, and the words of standings by the negative
 * number of their log. Tenant and kind are part of every term, so that one tenant's search reads no other's entries.
 */
export type TermKind = 'passage' | 'standing';

export const TERMS_TABLE = `CREATE VIRTUAL TABLE terms USING fts5(
    text, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '/${MARKS}'"
  )`;

const prefixOf = (tenant: string, kind: TermKind) => `${tenant}/${kind === 'passage' ? 'p' : 's'}/`;

export function termsText(tenant: string, kind: TermKind, terms: readonly string[]): string {
  const prefix = prefixOf(tenant, kind);
  return terms.map((term) => prefix + term).join(' ');
}

/** The condition in the language of FTS5. */
export function matchOf(tenant: string, kind: TermKind, terms: readonly TermCondition[]): string {
  const prefix = prefixOf(tenant, kind);
  return terms
    .map(({ term, whole }) => `"${prefix}${term.replaceAll('"', '')}"${whole ? '' : ' *'}`)
    .join(' AND ');
}
