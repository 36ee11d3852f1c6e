import type { TermCondition } from '../troupe.ts';

/**
 * Terms in indexes of PostgreSQL's full-text search. The tenant is part of every term, so that one tenant's search reads no
 * other's entries.
 */
export function termsOf(tenant: string, terms: readonly string[]): string {
  return terms.map((term) => lexeme(tenant, term)).join(' ');
}

export function queryOf(tenant: string, terms: readonly TermCondition[]): string {
  return terms.map(({ term, whole }) => `${lexeme(tenant, term)}${whole ? '' : ':*'}`).join(' & ');
}

function lexeme(tenant: string, term: string): string {
  return `'${`${tenant}/${term}`.toWellFormed().replace(/['\\]/g, String.raw`$&$&`)}'`;
}
