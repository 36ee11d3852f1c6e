import type { Principal } from '../../library/access/index.ts';
import type { Author } from '../../events/index.ts';
import { Refusal } from '../refusal.ts';

/** The body, with the caller's own author if it has none. */
export function withAuthor({ author }: Principal, body: unknown): unknown {
  const isSilent =
    typeof body === 'object' && body !== null && !Array.isArray(body) && !Object.hasOwn(body, 'author');
  return author && isSilent ? { ...body, author } : body;
}

/** Checks that a caller may write as this author: as itself, or as any person if it has no author. Throws `Refusal`. */
export function checkAuthor({ author, scopes }: Principal, given: Author): void {
  if (author) {
    if (isSameAuthor(author, given)) return;
    const own = `${author.kind} "${author.id}" with the name "${author.name}"`;
    throw refused(`this caller may only write as ${own}: leave out the author`, given);
  }
  if (given.kind === 'user' || scopes.includes('operate')) return;
  throw refused(`writing as the ${given.kind} "${given.id}" needs the scope "operate"`, given);
}

/** Checks that a caller may import messages of any author. Throws `Refusal`. */
export function checkAllAuthors({ author, scopes }: Principal): void {
  if (author === null && scopes.includes('operate')) return;
  const message =
    'a transcript has messages of agents: importing it needs the scope "operate" and a caller without an author';
  throw new Refusal(403, 'author_refused', message);
}

function refused(message: string, { kind, id }: Author): Refusal {
  return new Refusal(403, 'author_refused', message, { author: { kind, id } });
}

export function isSameAuthor(a: Author, b: Author): boolean {
  return a.kind === b.kind && a.id === b.id && a.name === b.name;
}
