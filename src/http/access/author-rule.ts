import type { Principal } from '../../access/index.ts';
import type { Author } from '../../events/index.ts';
import { Refusal } from '../refusal.ts';

/** What a client sent, with its author where that goes without saying. */
export function withAuthor({ author }: Principal, body: unknown): unknown {
  const isSilent =
    typeof body === 'object' && body !== null && !Array.isArray(body) && !Object.hasOwn(body, 'author');
  return author && isSilent ? { ...body, author } : body;
}

/** Whether a caller may bring these words: its own, or those of any person if it speaks for people. Throws `Refusal`. */
export function checkAuthor({ author, scopes }: Principal, given: Author): void {
  if (author) {
    if (isSameAuthor(author, given)) return;
    const own = `${author.kind} "${author.id}", by the name "${author.name}",`;
    throw refused(`this caller speaks as ${own} and as nobody else: leave the author out`, given);
  }
  if (given.kind === 'user' || scopes.includes('operate')) return;
  throw refused(`words of the ${given.kind} "${given.id}" are brought with the scope "operate" only`, given);
}

/** What brings words of people and agents alike, and says itself whose they are. Throws `Refusal`. */
export function checkAllAuthors({ author, scopes }: Principal): void {
  if (author === null && scopes.includes('operate')) return;
  const message = 'a transcript has words of agents: to bring it takes the scope "operate", and no author';
  throw new Refusal(403, 'author_refused', message);
}

function refused(message: string, { kind, id }: Author): Refusal {
  return new Refusal(403, 'author_refused', message, { author: { kind, id } });
}

export function isSameAuthor(a: Author, b: Author): boolean {
  return a.kind === b.kind && a.id === b.id && a.name === b.name;
}
